"""Progress outside a terminal."""

from aevb.training import progress


def test_lines_are_printed_at_intervals_and_at_the_end(capsys, monkeypatch):
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    with progress.Progress(True, 1000) as bar:
        for _ in range(8):
            bar.advance(10, "lower_bound", -1.0)
        bar.end()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 3
    assert lines[0].startswith("learning: ")
    assert "training lower bound -1.00 nats" in lines[0]
    assert lines[-1] == "learning: done after 80 samples"
    with progress.Progress(True, 1000, what="refining q(z|x)") as bar:
        for _ in range(8):
            bar.advance(10, "lower_bound", -1.0)
        bar.end()
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("refining q(z|x): ") for line in lines)
    with progress.Progress(True, 1000) as bar:
        bar.end()  # a quick run stays silent
    assert capsys.readouterr().err == ""
