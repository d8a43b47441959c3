"""Collections of generated texts."""

import numpy as np
from hypothesis import strategies as st

ODD = [
    "ΑΣ Σ ΟΔΟΣ ΟΔΟΣ",
    "İstanbul İST",
    "a_b 12 x",
    "naïve cafe\u0301 café",
    "ab\u00a0cd\tef\n\ngh",
    "日本語 日本語 テキスト",
    "",
    " \n",
    "don't re-use",
    "x y z",
    "ab ab abc",
]


WORDS = ["sun", "Sun", "moon", "so", "a", "été", "ΟΔΟΣ", "x1", "_y", "I", "ab", "abc", "ab_", "日本", "e\u0301e", "٣٤"]


texts_of = st.lists(
    st.one_of(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), st.sampled_from(ODD), st.text(max_size=12)),
    min_size=1,
    max_size=9,
)


def collection(n: int = 3000, seed: int = 0) -> list[str]:
    """Texts of words with frequencies as in a language: few words are frequent, most are rare."""
    generator = np.random.default_rng(seed)
    return [
        " ".join(f"w{word}" for word in np.minimum(generator.zipf(1.3, generator.integers(0, 40)), 5000).tolist())
        for _ in range(n)
    ]
