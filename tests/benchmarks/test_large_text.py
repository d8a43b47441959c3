"""The collection that is made up, and its page."""

import numpy as np

from benchmarks.base import table
from benchmarks.large_text import lines_of, made_up


def test_texts_are_made_up_from_the_seed_and_have_topics() -> None:
    texts, topics = made_up(200, 5000)
    assert (texts, topics.tolist()) == (made_up(200, 5000)[0], made_up(200, 5000)[1].tolist())
    assert texts != made_up(200, 5000, seed=1)[0]
    assert 100 < np.mean([len(text.split()) for text in texts]) < 200
    words = [
        set[str]().union(*(text.split() for text, of in zip(texts, topics, strict=True) if of == topic))
        for topic in range(4)
    ]
    assert (
        min(len(each - set[str]().union(*words[:place], *words[place + 1 :])) for place, each in enumerate(words)) > 100
    )


def test_lines_that_are_not_measured_stay_in_their_order() -> None:
    page = (
        "# Head\n\n"
        + table(["set", "method", "s"], [["imdb-30k", "tsvm", "1"], ["20news-bydate", "auto", "2"]])
        + "\nEnd.\n"
    )
    found = lines_of(page, [["imdb-30k", "tsvm", "3"], ["zipf-100k", "auto", "4"]])
    assert found == [["zipf-100k", "auto", "4"], ["imdb-30k", "tsvm", "3"], ["20news-bydate", "auto", "2"]]
    assert lines_of("", [["imdb-30k", "tsvm", "3"]]) == [["imdb-30k", "tsvm", "3"]]
