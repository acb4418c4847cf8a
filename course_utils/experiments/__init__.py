"""Measurements of claims, one file a claim: functions that return plain data."""
