"""Batch runs of the notebooks: executing one, running several, reporting."""
