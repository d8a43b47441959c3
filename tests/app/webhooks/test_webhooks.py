"""Webhooks over HTTP: registered, told, listed, deleted."""

import json

from halfmoon import Halfmoon

from tests.app.conftest import Start, problem_of, publish
from tests.app.services.webhooks.receiver import receiving
from tests.waiting import until

NETWORKS = '["127.0.0.0/8"]'


def test_a_webhook_from_registration_to_message(start: Start) -> None:
    gateway = start(webhook_networks=json.loads(NETWORKS), reconcile_interval_seconds=0.05)
    with receiving() as receiver, Halfmoon(str(gateway.client.base_url), retries=0) as hm:
        webhook = hm.webhooks.create(receiver.url, ["version.published"])
        assert webhook.secret is not None
        version = publish(gateway.store)
        until(lambda: receiver.received)
        assert json.loads(receiver.received[0].body)["data"]["job"] == version.job
        (listed,) = hm.webhooks.all()
        assert (listed.id, listed.url, listed.events, listed.secret) == (
            webhook.id,
            receiver.url,
            ["version.published"],
            None,
        )
        until(lambda: hm.webhooks.all()[0].waiting == 0)
        receiver.status = 503
        publish(gateway.store)
        until(lambda: hm.webhooks.all()[0].last_error == "the answer was 503")
        hm.webhooks.delete(webhook.id)
        assert hm.webhooks.all() == []
    assert gateway.store.children("outbox") == []


def test_what_is_refused(start: Start) -> None:
    gateway = start()
    for body, field, message in (
        ({"url": "http://127.0.0.1:1/"}, "url", "HALFMOON_WEBHOOK_NETWORKS"),
        ({"url": "example.com"}, "url", "must be an address such as https://"),
        ({"url": "http://93.184.215.14/", "secret": "hush"}, "secret", "whsec_"),
        ({"url": "http://93.184.215.14/", "events": []}, "events", ""),
        ({"url": "http://93.184.215.14/", "events": ["job.end"]}, "events", "job.ended"),
    ):
        problem = problem_of(gateway.client.post("/v1/webhooks", json=body), 422)
        assert problem["errors"][0]["field"].startswith(field)
        assert message in problem["detail"]
    problem_of(gateway.client.delete("/v1/webhooks/webhook-1"), 404)
    assert gateway.client.get("/v1/webhooks").json() == {"webhooks": []}
