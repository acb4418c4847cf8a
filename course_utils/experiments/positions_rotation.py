"""Claim: the encoding of position p + k is a linear function of that of p, the same for every p: a rotation.

Vaswani et al. (2017, section 3.5) chose the sinusoids for this property. Measured here: a matrix is fitted, and its
angles are compared with those of the formula. An odd width has a sine without its cosine, and there it breaks.
"""

import math

import torch
from torch import Tensor

from course_utils.positions import PositionalEncoding

POSITIONS = 20_000  # enough for the slowest waves of a width of 48 to turn


def fitted_shift(width: int, offset: int, positions: int = POSITIONS) -> tuple[Tensor, Tensor]:
    """The matrix M that best gives PE(p + offset) = M PE(p) over all positions, by least squares.

    Args:
        width: of the encoding, D.
        offset: k, from 1.
        positions: number of positions of the encoding.

    Returns:
        M [D, D] in double precision, and the largest error of each dimension over all positions [D].

    Raises:
        ValueError: if there are too few positions for D equations.
    """
    if offset < 1 or positions - offset < width:
        raise ValueError(
            f"a fit of {width} dimensions needs an offset of at least 1 and {width} positions beside it; "
            f"got {offset=} and {positions=}"
        )
    encoding = PositionalEncoding(width, max_len=positions).pe[0].double()  # [positions, D]
    here, there = encoding[:-offset], encoding[offset:]
    transposed = torch.linalg.lstsq(here, there).solution  # positions are rows, so it stands on the right
    return transposed.T, (here @ transposed - there).abs().amax(dim=0)


def angles_of_formula(width: int, offset: int) -> Tensor:
    """The angles by which the pairs of dimensions turn, k / 10000^(2i/D), wrapped to [0, pi] and sorted: [D // 2]."""
    turned = offset / 10000 ** (2 * torch.arange(width // 2, dtype=torch.float64) / width)
    return ((turned + math.pi) % (2 * math.pi) - math.pi).abs().sort().values


def rotation(width: int, offset: int, positions: int = POSITIONS) -> dict[str, float]:
    """How well the fitted matrix is a rotation by the angles of the formula.

    Args:
        width: of the encoding; even.
        offset: k, from 1.
        positions: number of positions of the encoding.

    Returns:
        Largest deviations: "error" of the fit, "from_orthogonal" of MᵀM from the identity, "from_angles" of the
        eigenvalues' angles from those of the formula, in radians; and the "determinant".

    Raises:
        ValueError: if the width is odd: a sine without a cosine has no angle.
    """
    if width % 2:
        raise ValueError(f"an odd width has a sine without a cosine, so its shift is no rotation; got {width=}")
    matrix, errors = fitted_shift(width, offset, positions)
    angles = torch.linalg.eigvals(matrix).angle().abs().sort().values[::2]  # each turns both ways: a pair of them
    identity = torch.eye(width, dtype=torch.float64)
    return {
        "error": errors.max().item(),
        "from_orthogonal": (matrix.T @ matrix - identity).abs().max().item(),
        "determinant": torch.linalg.det(matrix).item(),
        "from_angles": (angles - angles_of_formula(width, offset)).abs().max().item(),
    }
