"""One text in, one label out, as flat as doccano and the like send and read it."""

from tests.app.conftest import Gateway, problem_of, publish
from tests.app.datasets.test_kinds import text_model


def test_the_label_of_a_text(gateway: Gateway) -> None:
    publish(gateway.store, model=text_model())
    text = "late vote vote"
    predicted = gateway.client.post("/v1/models/news/predict", json={"documents": [{"text": text}]}).json()
    answer = gateway.client.post("/v1/models/news/label", json={"text": text})
    probability = None if predicted["probabilities"] is None else max(predicted["probabilities"][0])
    assert answer.json() == {"label": predicted["labels"][0], "probability": probability}
    long = gateway.client.post("/v1/models/news/label", json={"text": "late " * 50_000})
    assert long.status_code == 200


def test_what_is_refused(gateway: Gateway) -> None:
    publish(gateway.store)
    problem = problem_of(gateway.client.post("/v1/models/news/label", json={"text": "a"}), 422)
    assert problem["errors"][0]["field"] in ("text", "indices")
    assert (
        "did you mean 'text'?"
        in problem_of(gateway.client.post("/v1/models/news/label", json={"txt": "a"}), 422)["detail"]
    )
    problem_of(gateway.client.post("/v1/models/none/label", json={"text": "a"}), 404)
