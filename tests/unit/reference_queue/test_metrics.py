"""The text that a scraper reads."""

from reference_queue.metrics import METRICS, Metrics


def test_every_metric_is_there_from_the_start_with_its_advice() -> None:
    text = Metrics().text()
    for metric in METRICS:
        assert (
            f"# HELP reference_queue_{metric.name} {metric.advice}\n# TYPE reference_queue_{metric.name} {metric.kind}\n"
            in text
        )
        assert len(metric.advice) > 10


def test_labels_are_escaped_and_gauges_read_late() -> None:
    metrics = Metrics()
    metrics.add("failures_total", label='a"b\\c\nd')
    metrics.gauges["executing_jobs"] = lambda: 3
    metrics.sampled["backlog_jobs", "timeout"] = 12
    text = metrics.text()
    assert 'reference_queue_failures_total{class="a\\"b\\\\c\\nd"} 1\n' in text
    assert "reference_queue_executing_jobs 3\n" in text
    assert 'reference_queue_backlog_jobs{class="timeout"} 12\n' in text
