"""Workers that could not do the work are refused in one line, and no key travels."""

from __future__ import annotations

import pickle
import socket
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from pipeline import dask_client
from pipeline.dask_client import scheduler_client
from pipeline.errors import InputError
from pipeline.models.providers import with_credentials, without_credentials
from pipeline.models.spec import ModelSpec
from pipeline.runs.connecting import check_workers, connected

WHERE = [f"tcp://10.0.0.{k}:4000" for k in range(5)]


class FakeClient:
    """Five workers that answer as told; everything sent to them is kept, pickled."""

    def __init__(self, versions: dict[str, Any] | None = None, workers: list[str] = WHERE) -> None:
        self._versions, self._workers = versions or {}, workers
        self.sent: list[bytes] = []

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self._workers, 1)

    def run(self, function: Callable[..., Any], *arguments: Any, on_error: str) -> dict[str, Any]:
        self.sent.append(pickle.dumps(arguments))
        if function is version:
            return {address: self._versions.get(address, version("auxeval")) for address in self._workers}
        return {address: function(*arguments) for address in self._workers}


def test_workers_without_auxeval_or_with_another_version_are_named() -> None:
    with pytest.raises(InputError, match="has no worker"):
        check_workers(FakeClient(workers=[]), {})
    with pytest.raises(InputError, match=r"not installed for the Dask workers tcp://10.0.0.1:4000;"):
        check_workers(FakeClient({WHERE[1]: PackageNotFoundError("auxeval")}), {})
    with pytest.raises(InputError, match=r"10\.0\.0\.0.* and 2 more have auxeval 0\.0\.9 and this"):
        check_workers(FakeClient(dict.fromkeys(WHERE, "0.0.9")), {})
    check_workers(FakeClient(), {})


def test_a_missing_key_is_named_and_a_present_one_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"X-Gateway": "sk-of-the-client-header"}
    gpt = ModelSpec(
        "gpt", "openai/gpt", api_key="sk-of-the-client", api_key_env="TEAM_KEY", headers=ours,
        headers_env={"X-Gateway": "TEAM_WORD"},
    )  # fmt: skip
    client = FakeClient()
    for missing, there in (("TEAM_KEY", "TEAM_WORD"), ("TEAM_WORD", "TEAM_KEY")):
        monkeypatch.delenv(missing, raising=False)
        monkeypatch.setenv(there, "sk-of-the-worker")
        with pytest.raises(InputError, match=rf"models\.gpt: .*{missing} is not set.*\(Dask workers .*never sent"):
            check_workers(client, {"gpt": gpt})
    monkeypatch.setenv("TEAM_WORD", "sk-of-the-worker")
    monkeypatch.setenv("TEAM_KEY", "sk-of-the-worker")
    check_workers(client, {"gpt": gpt})
    carried = pickle.dumps(without_credentials(gpt))  # what travels with every attempt
    assert b"sk-of" not in carried
    assert with_credentials(pickle.loads(carried)).secrets == ("sk-of-the-worker", "sk-of-the-worker")  # noqa: S301
    assert client.sent
    assert not any(b"sk-of" in sent for sent in client.sent)


@pytest.mark.parametrize("address", ["nonsense", "tcp://no.such.host.invalid:8786", "tcp://127.0.0.1", "gone.json", ""])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no Dask scheduler answers at"), scheduler_client(address):
        pass


def test_a_port_where_nobody_listens_is_bad_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pipeline.cli import main

    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_client, "_CONNECT_S", "0.5s")
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SystemExit) as ended:
            main(["run", "--limit", "2", "--dask", address])
    assert ended.value.code == 2
    assert not list(tmp_path.glob("runs/*/config.yaml"))


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'auxeval\[dask\]'"), connected("tcp://127.0.0.1:1", None):
        pass
    with pytest.raises(InputError, match=r"pip install 'auxeval\[dask\]'"), connected(None, 2):
        pass
