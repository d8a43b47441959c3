"""The options of the terms of text."""

from typing import Literal

from pydantic import Field

from core.options.base import Options


class TextOptions(Options):
    """Options of the terms of text, whatever the algorithm."""

    min_documents: int = Field(
        default=2, ge=1, le=1_000_000_000, description="A term counts if it occurs in at least so many documents."
    )
    ngrams: Literal[1, 2] = Field(
        default=2, description="Most words of a term: 1, single words; 2, pairs of words that follow one another too."
    )
    max_terms: int = Field(
        default=500_000,
        ge=1,
        le=10_000_000,
        description="Most terms; beyond, those that occur in most documents are kept.",
    )
