"""The backend as Label Studio 1.23 calls it."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from app.label_studio.label_config import NotTextChoice, text_choice
from app.label_studio.service import Client, LabelStudioUnavailable, Named, Project, Trainer, documents_of
from storage.repositories.api_keys import ApiKeys, Scope
from tests.app.conftest import Gateway, Start, problem_of, publish, text_model
from tests.http_servers import Handler, answering_by
from tests.waiting import until

CONFIG = """<View><!-- what people see --><Text name="txt" value="$body"/>
<Choices name="topic" toName="txt"><Choice value="Sports" alias="sport"/><Choice value="politics"/></Choices></View>"""
TASKS = [
    {"id": 1, "data": {"body": "late vote vote"}, "project": 7},
    {"id": 2, "data": {}, "project": 7},
    {"id": 3, "data": {"body": ""}, "project": 7},
]
BODY = {
    "tasks": TASKS,
    "label_config": CONFIG,
    "project": "7.1716",
    "params": {"login": None, "password": None, "context": None},
}


def annotation(label: str, cancelled: bool = False) -> dict[str, Any]:
    results = [{"from_name": "other", "value": {"text": ["x"]}}, {"from_name": "topic", "value": {"choices": [label]}}]
    return {"result": results, "was_cancelled": cancelled}


EXPORT = [
    {"id": 1, "data": {"body": "a late goal"}, "annotations": [annotation("sport")]},
    {"id": 2, "data": {"body": "a vote"}, "annotations": [annotation("politics")]},
    {"id": 3, "data": {"body": "late"}, "annotations": [annotation("sport", cancelled=True)]},
    {"id": 4, "data": {"body": "goal"}, "annotations": []},
    {"id": 5, "data": {"image": "a.png"}, "annotations": []},
]


def post(gateway: Gateway, path: str, body: Any, **more: Any) -> httpx.Response:
    return gateway.client.post(f"/label-studio/{path}", json=body, **more)


def predicted(gateway: Gateway, path: str = "predict", **changes: Any) -> list[dict[str, Any]]:
    answer = post(gateway, path, BODY | changes)
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    assert len(results) == len((BODY | changes)["tasks"])
    return results


def test_before_there_is_a_model(gateway: Gateway) -> None:
    assert gateway.client.get("/label-studio/health").json() == {
        "status": "UP",
        "model_class": "Halfmoon",
        "last_error": None,
    }
    setup = {
        "project": "7.1716",
        "schema": CONFIG,
        "hostname": "http://localhost:8080",
        "access_token": "t",
        "extra_params": None,
    }
    assert post(gateway, "setup", setup).json() == {"model_version": ""}
    assert predicted(gateway) == [{"result": [], "score": 0.0, "model_version": ""}] * 3


def test_predictions_by_name_alias_and_number(gateway: Gateway) -> None:
    for name in ("label-studio-7", "news"):
        publish(gateway.store, name, model=text_model())
    publish(gateway.store, "news", model=text_model())
    gateway.client.put("/v1/models/news/aliases/live", json={"version": 1})
    first, nothing, empty = predicted(gateway)
    assert first["result"] == [
        {"from_name": "topic", "to_name": "txt", "type": "choices", "value": {"choices": ["politics"]}}
    ]
    assert (nothing["result"], empty["result"][0]["value"]) == ([], {"choices": ["politics"]})
    assert {each["model_version"] for each in (first, nothing, empty)} == {"label-studio-7:1"}
    for path, version in (
        ("news/predict", "news:2"),
        ("news@live/predict", "news:1"),
        ("news:1/predict", "news:1"),
        ("none/predict", ""),
    ):
        assert {each["model_version"] for each in predicted(gateway, path)} == {version}
    assert post(gateway, "news/setup", {"project": "7.1716", "schema": CONFIG}).json() == {"model_version": "news:2"}
    assert gateway.client.get("/label-studio/news/versions").json() == {"versions": ["news:2", "news:1"]}


def test_as_many_results_as_tasks_whatever_is_wrong(gateway: Gateway) -> None:
    publish(gateway.store, "label-studio-7", model=text_model())
    publish(gateway.store, "vectors")
    assert predicted(gateway, tasks=[]) == []
    assert [each["result"] for each in predicted(gateway, label_config="<View/>")] == [[], [], []]
    assert [each["result"] for each in predicted(gateway, label_config="no XML")] == [[], [], []]
    assert [each["result"] for each in predicted(gateway, "vectors/predict")] == [[], [], []]
    other = CONFIG.replace('alias="sport"', "").replace("politics", "other")
    assert [each["result"] for each in predicted(gateway, label_config=other)] == [[], [], []]
    assert len(predicted(gateway, tasks=TASKS * 2000)) == 6000
    assert "toName" in problem_of(post(gateway, "setup", {"schema": "<View/>"}), 422)["detail"]
    problem_of(post(gateway, "predict", {"tasks": [1]}), 422)


def test_the_key_is_the_password(start: Start) -> None:
    gateway = start(access="keys", key_refresh_seconds=0.05)
    _, reading = ApiKeys(gateway.store).create("ls", {Scope.PREDICT})
    headers = {"Authorization": f"Basic {b64encode(f'anyone:{reading}'.encode()).decode()}"}
    until(lambda: post(gateway, "predict", BODY, headers=headers).status_code == 200)
    problem_of(post(gateway, "webhook", {"action": "START_TRAINING", "project": {"id": 7}}, headers=headers), 403)
    for wrong in ("Basic x", f"Basic {b64encode(b'anyone:').decode()}", f"Basic {b64encode(b'anyone').decode()}"):
        problem_of(post(gateway, "predict", BODY, headers={"Authorization": wrong}), 401)
    problem_of(post(gateway, "predict", BODY), 401)


def test_training_reads_the_project(start: Start) -> None:
    """The answer comes at once; an unchanged project makes no second job."""
    with label_studio() as url:
        gateway = start(label_studio_url=url, label_studio_token="a.b.c")
        answer = post(gateway, "webhook", {"action": "START_TRAINING", "project": {"id": 7, "title": "news"}})
        assert answer.json() == {"status": "training", "detail": "model label-studio-7"}
        until(lambda: gateway.client.get("/v1/jobs").json()["jobs"])
        (job,) = gateway.client.get("/v1/jobs").json()["jobs"]
        assert job["model_name"] == "label-studio-7"
        documents = gateway.client.get(f"/v1/datasets/{job['dataset']}/documents").json()["documents"]
        assert [(each["id"], each["text"], each["label"]) for each in documents] == [
            *(("1", "a late goal", "sport"), ("2", "a vote", "politics"), ("3", "late", None), ("4", "goal", None))
        ]
        until(
            lambda: (
                post(gateway, "webhook", {"action": "START_TRAINING", "project": {"id": 7}}).json()["status"]
                == "training"
            )
        )
        assert (
            post(gateway, "webhook", {"action": "ANNOTATION_CREATED", "project": {"id": 7}}).json()["status"] == "later"
        )
        until(
            lambda: (
                post(gateway, "webhook", {"action": "START_TRAINING", "project": {"id": 8}}).json()["status"]
                == "training"
            )
        )
        until(lambda: "404" in (gateway.client.get("/label-studio/health").json()["last_error"] or ""))
        assert len(gateway.client.get("/v1/jobs").json()["jobs"]) == 1


def test_what_does_not_begin_a_training(gateway: Gateway) -> None:
    for body in (
        {"action": "TASKS_CREATED", "project": {"id": 7}},
        {"action": "START_TRAINING"},
        {"action": "START_TRAINING", "project": {"id": True}},
        {"action": "START_TRAINING", "project": {"id": 7}},
    ):
        assert post(gateway, "webhook", body).json()["status"] == "ignored"


def test_one_training_at_a_time() -> None:
    seen: list[Project] = []
    now = 0.0
    project = Project(1, "a")

    def train(each: Project) -> None:
        seen.append(each)
        if len(seen) == 1:
            assert not trainer.wants(project, True)

    trainer = Trainer(train, lambda: now)
    assert trainer.wants(project, False)
    trainer.run(project)
    assert seen == [project, project]
    assert not trainer.wants(project, False)
    assert trainer.wants(Project(2, "a"), False)
    now = 100.0
    assert trainer.wants(project, False)


def test_a_training_that_breaks_does_not_stop_its_project() -> None:
    def train(_: Project) -> None:
        raise KeyError("task")

    trainer, project = Trainer(train), Project(1, "a")
    for _ in range(2):
        assert trainer.wants(project, True)
        trainer.run(project)
    assert "internal error" in (trainer.last_error or "")


def test_projects_that_a_stranger_names_take_few_threads() -> None:
    trainer = Trainer(lambda project: None)
    assert [trainer.wants(Project(id, "a"), True) for id in range(4)] == [True, True, False, False]
    trainer.run(Project(0, "a"))
    assert trainer.wants(Project(3, "a"), True)


@pytest.mark.parametrize(
    "export",
    [
        [1],
        [{}],
        [{"id": 1, "data": "a"}],
        [{"id": 1, "annotations": [1]}],
        [{"id": 1, "annotations": [{"result": [{"from_name": 1}]}]}],
    ],
)
def test_an_export_that_is_none(export: Any) -> None:
    with pytest.raises(LabelStudioUnavailable, match="not a list of tasks"):
        documents_of(text_choice(CONFIG), export)


@pytest.mark.parametrize("value", [None, [], {"choices": []}, {"choices": "a"}, {"choices": [["a"]]}])
def test_a_result_without_a_choice_is_no_label(value: Any) -> None:
    task = {"id": 1, "data": {"body": "b"}, "annotations": [{"result": [{"from_name": "topic", "value": value}]}]}
    assert documents_of(text_choice(CONFIG), [task]) == [{"id": "1", "text": "b"}]


def test_labels_of_several_people() -> None:
    def task(*labels: str) -> list[dict[str, Any]]:
        annotations = [
            {
                "result": [
                    {"from_name": "other", "value": {"text": "x"}},
                    {"from_name": "topic", "value": {"choices": [each]}},
                ]
            }
            for each in labels
        ]
        return [{"id": 1, "data": {"body": "b"}, "annotations": annotations}]

    choice = text_choice(CONFIG)
    assert [documents_of(choice, task(*labels))[0].get("label") for labels in (["a", "b", "a"], ["a", "b"], [])] == [
        "a",
        "b",
        None,
    ]
    with pytest.raises(LabelStudioUnavailable):
        documents_of(choice, {})


@pytest.mark.parametrize(
    "config",
    [
        "",
        "<View>",
        "<!DOCTYPE a><View/>",
        CONFIG.replace("body", "a." * 200),
        '<View><Image name="i" value="$i"/><Choices name="c" toName="i"/></View>',
        "a" * 2**21,
    ],
)
def test_configurations_without_a_choice_of_text(config: str) -> None:
    with pytest.raises(NotTextChoice):
        text_choice(config)


def test_names() -> None:
    assert [Named.of(*each).reference for each in ((None, "7.1"), ("a", "7"), ("a@b", "7"), ("a:3", "7"))] == [
        "label-studio-7",
        "a",
        "a@b",
        "a/3",
    ]
    assert [Named.of(each, "").name for each in ("a", "a@b", "a:3")] == ["a"] * 3
    assert (
        text_choice('<V><Text name="t" value="$meta.text"/><Choices name="c" toName="t"/></V>').text_of(
            {"meta": {"text": "x"}}
        )
        == "x"
    )


def test_what_label_studio_may_answer() -> None:
    with label_studio() as url:
        with pytest.raises(LabelStudioUnavailable, match="HALFMOON_LABEL_STUDIO_TOKEN"):
            Client(url, "wrong", 1000).get("projects/7")
        with pytest.raises(LabelStudioUnavailable, match="the token goes nowhere else"):
            Client(url, "legacy", 1000).get("moved")
        with pytest.raises(LabelStudioUnavailable, match="more than HALFMOON_MAX_REQUEST_BYTES"):
            Client(url, "legacy", 10).get("projects/7")
        assert Client(url, "legacy", 10**6).get("projects/7")["label_config"] == CONFIG
    with pytest.raises(LabelStudioUnavailable, match="refused"):
        Client(url, "legacy", 10).get("projects/7")


@contextmanager
def label_studio() -> Iterator[str]:
    """The part of Label Studio's API that the backend reads."""
    answers = {
        "/api/projects/7": {"label_config": CONFIG},
        "/api/projects/7/export?exportType=JSON&download_all_tasks=true": EXPORT,
    }

    class LabelStudio(Handler):
        def do_GET(self) -> None:
            allowed = self.headers["authorization"] in ("Bearer short", "Token legacy")
            self.give(
                answers.get(self.path) if allowed else None,
                302 if self.path == "/api/moved" else 404 if allowed else 401,
            )

        def do_POST(self) -> None:
            body = json.loads(self.posted())
            self.give(
                {"access": "short"} if (self.path, body) == ("/api/token/refresh", {"refresh": "a.b.c"}) else None, 401
            )

        def give(self, found: Any, otherwise: int) -> None:
            status = otherwise if found is None else 200
            self.answer(status, json.dumps(found).encode(), location="/api/projects/7")

    with answering_by(LabelStudio) as url:
        yield url


def several_people(*given: list[str], multiple: bool = False) -> dict[str, Any]:
    """The document of a task that these people, from 0 on, have annotated, beside two tasks of which all agree."""

    def result(choices: list[str]) -> list[dict[str, Any]]:
        return [{"from_name": "topic", "value": {"choices": choices}}] if choices else []

    annotations = [{"result": result(each), "completed_by": person} for person, each in enumerate(given)]
    agreed = [{"result": result([label]), "completed_by": {"id": 7}} for label in "ab"]
    tasks = [{"id": place, "data": {"body": "b"}, "annotations": [each]} for place, each in enumerate(agreed)]
    config = CONFIG.replace("<Choices", '<Choices choice="multiple"') if multiple else CONFIG
    document = documents_of(
        text_choice(config), [*tasks, {"id": 9, "data": {"body": "t"}, "annotations": annotations}]
    )[-1]
    return {name: value for name, value in document.items() if name not in ("id", "text")}


def test_people_who_disagree_vote() -> None:
    assert several_people(["a"], ["a"]) == {"label": "a"}
    assert several_people(["a"], ["b"]) == {"votes": {"person-0": "a", "person-1": "b"}}
    assert several_people(["a"], ["a"], ["c"]) == {"label": "a"}
    unheard = several_people(["a"], ["b"], ["b"], ["c"])
    assert unheard == {"votes": {"person-0": "a", "person-1": "b", "person-2": "b"}}


def test_several_choices_are_several_labels() -> None:
    assert several_people(["b", "a"], multiple=True) == {"labels": ["a", "b"]}
    assert several_people([], multiple=True) == {"labels": []}
    assert several_people(multiple=True) == {}
    assert several_people(["a", "b"], ["b"], ["c"], multiple=True) == {"labels": ["b"]}
    assert several_people(["a", "b"], ["b", "c"], multiple=True) == {"labels": ["b", "c"]}


def test_several_labels_are_one_result() -> None:
    choice = text_choice(CONFIG.replace("<Choices", '<Choices choice="multiple"'))
    assert choice.several
    (result,) = choice.result(["sport", "nonsense", "politics"])
    assert result["value"] == {"choices": ["sport", "politics"]}
    assert choice.result(["nonsense"]) == []
