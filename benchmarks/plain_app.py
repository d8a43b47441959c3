"""The app of an afternoon: FastAPI, pydantic and scikit-learn, serving one linear model. The service is compared with
it, and both with a bare answer of the same server, which computes nothing and is as fast as any answer can be.

``python -m benchmarks.plain_app MODEL.npz PORT`` with the arrays ``coefficients`` (n_features,) and ``intercept``.
"""

import io
import sys
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel, Field
from sklearn.linear_model import LogisticRegression
from starlette.types import ASGIApp, Receive, Scope, Send


class Document(BaseModel):
    indices: list[Annotated[int, Field(ge=0)]]
    values: list[float]


class Body(BaseModel):
    documents: list[Document]


class Answer(BaseModel):
    labels: list[str]
    scores: list[list[float]]


def make_app(model: LogisticRegression) -> FastAPI:
    app = FastAPI()

    def answer(X: Any) -> Answer:
        scores = model.decision_function(X)
        return Answer(labels=model.classes_[(scores > 0).astype(int)].tolist(), scores=scores[:, None].tolist())

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/predict")
    def predict(body: Body) -> Answer:
        lengths = [len(document.indices) for document in body.documents]
        indices = np.concatenate([document.indices for document in body.documents])
        values = np.concatenate([document.values for document in body.documents])
        return answer(
            sp.csr_matrix(
                (values, indices, np.concatenate([[0], np.cumsum(lengths)])), (len(lengths), model.n_features_in_)
            )
        )

    @app.post("/predict-npz")
    async def predict_npz(request: Request) -> Answer:
        return answer(sp.load_npz(io.BytesIO(await request.body())))

    return app


def beside_bare_answer(app: FastAPI) -> ASGIApp:
    """The app, with an answer at ``/bare`` that no framework makes."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != "/bare":
            await app(scope, receive, send)
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})

    return answer


def load(path: str) -> LogisticRegression:
    arrays = np.load(path)
    model = LogisticRegression()
    model.classes_ = np.array(["news", "sport"])
    model.coef_, model.intercept_ = arrays["coefficients"][None, :], arrays["intercept"]
    model.n_features_in_ = len(arrays["coefficients"])
    return model


if __name__ == "__main__":
    uvicorn.run(
        beside_bare_answer(make_app(load(sys.argv[1]))),
        port=int(sys.argv[2]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
