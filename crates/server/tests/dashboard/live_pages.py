"""What the server tells of the past and of workers: history, output, workers, rates."""

from browser import tab


def the_server_has_history_that_the_page_does_not_know(url, control):
    control.add(tasks=[{"id": "one", "title": "First"}])
    control.lease(by="mallory", resource="deploy", ttl_ms=600_000)
    control.release(by="mallory", resource="deploy")
    control.claim(by="alice", task="one")
    control.finish(by="alice", task="one", how="the disk is full")
    with tab(url) as opened:
        page = opened.page
        # As if more had happened since than the page loads at the start.
        page.route("**/v1/events?last=4000", lambda route: route.fulfill(json={"events": [], "revision": 0}))
        opened.open("/task/one")
        view = page.locator("#view-task")
        view.locator('.event[data-event="failed"]', has_text="the disk is full").wait_for()
        assert view.locator(".event").count() >= 3
        page.evaluate("location.hash = '#/lock/deploy'")
        page.locator("#view-lock .attempt", has_text="mallory").wait_for()
        page.evaluate("location.hash = '#/worker/alice'")
        page.locator('#view-worker .event[data-event="failed"]').wait_for()
        page.evaluate("location.hash = '#/events?kind=released'")
        page.locator('#view-events .event[data-event="released"]').wait_for()
        assert page.locator("#view-events .event").count() == 1
        opened.assert_quiet()


def a_running_task_shows_its_output(url, control):
    control.add(tasks=[{"id": "one", "title": "First"}])
    control.worker(by="alice")
    with tab(url) as opened:
        page = opened.open("/task/one")
        output = page.locator("#view-task .output")
        output.get_by_text("step one").wait_for()
        assert "step two" not in output.inner_text()
        control.proceed()
        page.locator("#view-task .attempt", has_text="completed").wait_for()
        output.get_by_text("step two").wait_for()
        opened.assert_quiet()


def idle_workers_are_shown(url, control):
    control.worker(by="alice")
    with tab(url) as opened:
        page = opened.open("/workers")
        page.locator('#view-workers .worker[data-state="idle"]', has_text="alice").wait_for()
        page.wait_for_function("() => [...document.querySelectorAll('.tile')].some(tile => tile.textContent === '1worker')")
        control.add(tasks=[{"id": "one", "title": "First"}])
        page.locator('#view-workers .worker[data-state="working"]').get_by_role("link", name="First").wait_for()
        control.proceed()
        idle = page.locator('#view-workers .worker[data-state="idle"]', has_text="1 done")
        idle.wait_for()
        idle.get_by_role("link", name="alice").click()
        page.locator("#view-worker dt", has_text="Done").wait_for()
        opened.assert_quiet()
