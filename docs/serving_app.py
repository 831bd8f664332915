"""Serve a model over HTTP: it answers GET requests while it learns from POST requests.

MODEL=clicks.isokern uvicorn --factory serving_app:make_app --port 8000
"""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel

import isokern


class Rows(BaseModel):
    """Rows with their labels; null is a missing value."""

    rows: list[list[float | None]]
    labels: list[int | float | str]


def make_app() -> FastAPI:
    """Return the application for the model file in the environment variable MODEL."""
    path = os.environ["MODEL"]
    model: Any = isokern.load(path)
    model.n_jobs = 1  # requests run in parallel already

    @asynccontextmanager
    async def save_at_the_end(app: FastAPI) -> AsyncIterator[None]:
        yield
        isokern.save(model, path)

    app = FastAPI(title=f"isokern: {type(model).__name__}", lifespan=save_at_the_end)

    # FastAPI runs functions without `async` in a pool of threads: many may predict while one learns.

    @app.get("/predict")
    def predict(row: Annotated[list[float], Query()]) -> dict[str, Any]:
        """Return the label of a row, /predict?row=1.5&row=nan&row=3, and its probability."""
        with _client_errors():
            label, probabilities = model.predict([row])[0], model.predict_proba([row])[0]
        return {"label": label.item(), "probability": float(probabilities.max())}

    @app.post("/learn")
    def learn(given: Rows) -> dict[str, int]:
        """Learn rows in order, and return how many have been learned in all."""
        rows = [[math.nan if value is None else value for value in row] for row in given.rows]
        with _client_errors():
            model.partial_fit(rows, given.labels)
        return {"n_rows_seen": model.n_rows_seen_}

    return app


@contextmanager
def _client_errors() -> Iterator[None]:
    """Answer 422 and the message where the library raises ValueError: the request was wrong."""
    try:
        yield
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
