"""What the page does, as a person sees it. `python scenarios.py SCENARIO PAGE_URL CONTROL_URL`."""

import re
import sys
import tempfile
import time
from pathlib import Path

from accessibility import axe_finds_nothing  # noqa: F401
from addresses import (  # noqa: F401
    every_address_opens_the_same_and_back_works,
    filters_find_and_say_when_nothing_matches,
    the_timeline_zooms_and_moves,
)
from browser import WAIT_MS, Control, tab
from live_pages import (  # noqa: F401
    a_running_task_shows_its_output,
    idle_workers_are_shown,
    the_server_has_history_that_the_page_does_not_know,
)
from pictures import pictures  # noqa: F401
from rates_page import rates_are_drawn_over_an_hour_and_a_day  # noqa: F401
from task_pages import (  # noqa: F401
    a_reviewer_decides_and_an_admin_edits,
    a_task_has_a_page_with_attempts_notes_and_graph,
    many_tasks_are_changed_at_once,
    slots_are_one_card,
)

ACTIONS = "[data-action]"


def seconds(text):
    """`1 min 20 s left` in seconds."""
    sizes = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    return sum(int(n) * sizes[unit] for n, unit in re.findall(r"(\d+)\s(d|h|min|s)\b", text))


def lock(page, resource):
    return page.locator(f'.lock[data-resource="{resource}"]')


def column(page, status):
    return page.locator(f'.column[data-column="{status}"]')


def a_lock_appears_and_runs_down(url, control):
    with tab(url) as opened:
        page = opened.open()
        page.wait_for_selector("text=Nothing is held")
        began = time.monotonic()
        control.lease(by="alice", resource="deploy", operation="release 1.4", ttl_ms=20_000)
        held = lock(page, "deploy")
        held.wait_for()
        print(f"shown {1000 * (time.monotonic() - began):.0f} ms after it was asked for")
        assert "alice" in held.inner_text() and "release 1.4" in held.inner_text()
        bar = held.locator(".bar i")
        width, left = bar.bounding_box()["width"], seconds(held.locator(".left").inner_text())
        assert 0 < left <= 20, left
        page.wait_for_function(
            "([bar, left, before, width]) => bar.getBoundingClientRect().width < width - 1"
            " && parseInt(left.textContent) < before",
            arg=[bar.element_handle(), held.locator(".left").element_handle(), left, width],
        )
        control.wait(by="bob", resource="deploy")
        control.wait(by="carol", resource="deploy")
        held.locator(".queue li").nth(1).wait_for()
        control.release(by="alice", resource="deploy")
        page.wait_for_function(
            "() => document.querySelector('.lock .holder')?.textContent === 'bob'"
        )
        opened.assert_quiet()


def an_admin_breaks_with_a_reason(url, control):
    control.guard(by="mallory", resource="deploy", operation="went home")
    with tab(url) as opened:
        page = opened.open()
        held = lock(page, "deploy")
        held.get_by_role("button", name="Break").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Break").click()
        dialog.get_by_text("A reason is required").wait_for()
        assert held.is_visible(), "without a reason nothing is broken"
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        held.get_by_role("button", name="Break").click()
        dialog.get_by_label("Reason").fill("<b>gone</b> home")
        dialog.get_by_role("button", name="Break").click()
        held.wait_for(state="detached")
        page.keyboard.press("5")
        row = page.locator('#view-events .event[data-event="broken"]')
        row.wait_for()
        said = row.inner_text()
        assert "mallory" in said and "<b>gone</b> home" in said, said
        assert "a user of this machine" in said, said
        opened.assert_quiet()


def an_admin_retries_cancels_and_pauses(url, control):
    control.add(tasks=[
        {"id": "one", "title": "First", "section": "backend"},
        {"id": "two", "title": "Second", "section": "backend", "status": "failed", "error": "no disk"},
    ])
    with tab(url) as opened:
        page = opened.open("/tasks")
        failed = column(page, "failed")
        failed.get_by_text("no disk").wait_for()
        failed.get_by_role("button", name="Retry two").click()
        column(page, "pending").locator('[data-id="two"]').wait_for()
        column(page, "pending").get_by_role("link", name="First").click()
        page.get_by_role("button", name="Cancel one").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel the task").click()
        page.locator(".task-state", has_text="Cancelled").wait_for()
        page.go_back()
        column(page, "cancelled").locator('[data-id="one"]').wait_for()
        page.get_by_role("button", name="Pause backend").click()
        page.locator(".section[data-paused]").wait_for()
        page.get_by_role("button", name="Resume backend").click()
        page.locator(".section[data-paused]").wait_for(state="detached")
        page.get_by_role("button", name="Pause all").click()
        page.get_by_text("no task can be claimed", exact=True).wait_for()
        page.get_by_role("button", name="Resume all").click()
        page.get_by_text("no task can be claimed", exact=True).wait_for(state="detached")
        opened.assert_quiet()


def others_only_look(url, control):
    control.guard(by="alice", resource="deploy")
    control.add(tasks=[
        {"id": "one", "title": "First", "section": "backend"},
        {"id": "two", "title": "Second", "section": "backend", "status": "failed"},
    ])
    for role in ("read", "work"):
        control.gate(role=role)
        with tab(url) as opened:
            page = opened.open()
            lock(page, "deploy").wait_for()
            assert page.locator(".role").inner_text() == role
            assert page.locator(ACTIONS).count() == 0
            page.keyboard.press("2")
            page.get_by_role("link", name="Second").click()
            page.get_by_role("heading", name="Second").wait_for()
            assert page.locator(ACTIONS).count() == 0
            opened.assert_quiet()
    control.gate(role="admin")
    with tab(url) as opened:
        page = opened.open()
        lock(page, "deploy").wait_for()
        assert page.locator(ACTIONS).count() > 0, "the same look finds them where they are"


def many_tasks_stay_smooth(url, control):
    total = 20_000
    for start in range(0, total, 5_000):
        control.add(tasks=[
            {"id": f"t{n}", "title": f"Task number {n}", "section": f"section {n % 7}" if n > 100 else None,
             "labels": [f"label-{n % 11}"], "status": "completed" if n % 5 == 0 else "pending"}
            for n in range(start, start + 5_000)
        ])
    with tab(url) as opened:
        page = opened.open("/tasks")
        page.evaluate("""() => {
            window.longest = 0;
            let last = performance.now();
            const frame = (now) => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(frame); };
            requestAnimationFrame(frame);
        }""")
        # The counts are the server's, though few tasks are loaded.
        page.wait_for_function("() => document.querySelector('[data-column=pending] .count').textContent === '16,000'")
        page.locator('[data-column=completed] [data-id="t19995"]').wait_for()
        nodes = page.evaluate("document.querySelectorAll('*').length")
        assert nodes < 3_000, f"{nodes} elements for {total} tasks"
        asked = len([one for one in opened.requests if "/v1/tasks?" in one])
        assert asked < 20, f"{asked} requests for the first pages"
        page.evaluate("window.longest = 0")
        for n in range(20):
            control.claim(by=f"worker {n}", task=f"t{n * 5 + 1}")
        page.keyboard.press("/")
        page.keyboard.type("number 14321")
        cards = column(page, "pending").locator(".card")
        page.wait_for_function("() => document.querySelectorAll('[data-column=pending] .card').length === 1")
        assert "Task number 14321" in cards.inner_text()
        page.locator("#search").fill("WORKER 7")
        page.wait_for_function("() => document.querySelectorAll('[data-column=in_progress] .card').length === 1")
        page.locator("#search").fill("")
        column(page, "pending").get_by_role("button", name="Show more").click()
        page.wait_for_function("() => document.querySelectorAll('[data-column=pending] .card').length === 140")
        # The list loads as one scrolls, and only the rows in sight exist.
        page.get_by_role("button", name="List").click()
        for _ in range(5):
            known = page.evaluate("document.querySelector('.rows').clientHeight")
            page.evaluate("document.querySelector('.rows-box').scrollTop = 1e9")
            page.wait_for_function("known => document.querySelector('.rows').clientHeight > known", arg=known)
        assert page.locator(".task-row").count() < 60
        longest = page.evaluate("window.longest")
        print(f"{nodes} elements; the longest frame took {longest:.0f} ms")
        assert longest < 2_000, f"the page stood still for {longest:.0f} ms"
        opened.assert_quiet()


# What changes the direction of the text around it is shown as an escape.
REORDERING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def as_shown(title):
    return REORDERING.sub(lambda found: f"\\u{ord(found.group()):04x}", title)


def hostile_titles_are_text(url, control):
    hostile = [
        "<img src=x onerror=\"window.hacked = 1\">",
        "<script>window.hacked = 1</script>",
        "javascript:window.hacked=1",
        "\u202egnol si siht\u202c \u2066mixed",
        "نص طويل من اليمين إلى اليسار",
        "x" * 1_000,
        "{{constructor.constructor('window.hacked = 1')()}}",
    ]
    control.add(tasks=[
        # A label is a name, which has no characters that change the direction of text.
        {"id": f"h{n}", "title": title, "description": title,
         "labels": [] if "\u202e" in title else [title[:60]],
         "section": "<b>bold</b>", "status": "failed" if n % 2 else "pending", "error": title}
        for n, title in enumerate(hostile)
    ])
    label = "<img src=x onerror='window.hacked=1'>"
    control.guard(by=label, resource="lock:<svg onload=window.hacked=1>", operation=hostile[0])
    control.wait(by=label, resource="lock:<svg onload=window.hacked=1>")
    with tab(url) as opened:
        page = opened.open()
        page.locator(".lock .queue li").wait_for()
        assert label in page.locator(".lock").inner_text()
        for key in "12345":
            page.keyboard.press(key)
            page.wait_for_selector(".view:not([hidden])")
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"view {key} is {wide} pixels too wide"
        page.keyboard.press("2")
        for n, title in enumerate(hostile):
            card = page.locator(f'[data-id="h{n}"]')
            card.wait_for()
            assert card.bounding_box()["height"] < 300
            card.locator(".card-title").click()
            page.wait_for_function("start => document.querySelector('#view-task .task-title')?.textContent.startsWith(start)", arg=as_shown(title)[:200])
            assert not REORDERING.search(page.locator("body").inner_text())
            page.go_back()
        assert page.evaluate("window.hacked") is None
        # The page's own mark is the only picture.
        assert page.locator("img").count() == 1
        assert page.locator("#main script, #main svg[onload]").count() == 0
        opened.assert_quiet()


def it_comes_back_after_a_restart(url, control):
    control.guard(by="alice", resource="deploy")
    control.add(tasks=[{"id": "one", "title": "First"}])
    with tab(url) as opened:
        page = opened.open()
        lock(page, "deploy").wait_for()
        control.stop()
        page.wait_for_selector("#connection[data-state=waiting], #connection[data-state=reconnecting]")
        page.wait_for_selector("#banner:not([hidden])")
        control.guard(by="bob", resource="backup")
        control.claim(by="carol", task="one")
        control.finish(by="carol", task="one", how="complete")
        control.start()
        page.wait_for_selector("#connection[data-state=live]", timeout=3 * WAIT_MS)
        lock(page, "backup").wait_for()
        assert page.locator("#banner").is_hidden()
        page.keyboard.press("5")
        page.locator('#view-events .event[data-event="completed"]').wait_for()
        page.keyboard.press("2")
        column(page, "completed").locator('[data-id="one"]').wait_for()
        opened.assert_quiet(but=["ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY", "net::ERR"])


def a_token_is_asked_for(url, control):
    control.gate(role="read", token="right")
    control.guard(by="alice", resource="deploy")
    with tab(url) as opened:
        page = opened.page
        page.goto(url)
        field = page.get_by_label("Token")
        field.wait_for()
        assert not page.locator("#board").is_visible()
        field.fill("wrong")
        field.press("Enter")
        page.get_by_text("does not accept this token").wait_for()
        field.fill("right")
        field.press("Enter")
        lock(page, "deploy").wait_for()
        kept = page.evaluate("[Object.values(sessionStorage), Object.values(localStorage), document.cookie]")
        assert kept == [["right"], [], ""], kept
        assert not any("right" in asked for asked in opened.requests), "no token in an address"
        page.reload()
        lock(page, "deploy").wait_for()
        page.get_by_role("button", name="Sign out").click()
        field.wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        opened.assert_quiet(but=["401"])


def an_address_with_a_token_signs_in(url, control):
    control.gate(role="read", token="tnr_right")
    control.guard(by="alice", resource="deploy")
    address = f"{url}/#token=tnr_right"
    kept = "[Object.values(sessionStorage), Object.values(localStorage), document.cookie]"
    with tempfile.TemporaryDirectory() as folder, tab(url) as opened:
        page = opened.page
        # As `tenure serve --open` does: a private file leads to the address.
        lead = Path(folder, "open.html")
        lead.write_text(control.leading_page(address=address)["page"])
        page.goto(lead.as_uri())
        lock(page, "deploy").wait_for()
        assert "tnr_right" not in page.evaluate("location.href"), page.url
        assert page.evaluate(kept) == [["tnr_right"], [], ""], page.evaluate(kept)
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").wait_for()
        # Pasted into a tab that shows the page: nothing is loaded anew.
        page.goto(address)
        lock(page, "deploy").wait_for()
        assert "tnr_right" not in page.evaluate("location.href"), page.url
        page.keyboard.press("2")
        assert page.locator("#view-tasks").is_visible()
        opened.requests = [asked for asked in opened.requests if not asked.startswith("file:")]
        opened.assert_quiet(but=["401"])


def all_by_keyboard(url, control):
    control.guard(by="alice", resource="deploy")
    control.add(tasks=[{"id": "one", "title": "First"}])
    with tab(url) as opened:
        page = opened.open()
        lock(page, "deploy").wait_for()
        focused = "document.activeElement.id || document.activeElement.dataset.action || ''"
        for key, view in zip("123456", ("overview", "tasks", "timeline", "workers", "events", "rates")):
            page.keyboard.press(key)
            assert page.locator(f"#view-{view}").is_visible()
            assert page.evaluate(focused) == f"tab-{view}"
        page.keyboard.press("1")
        page.keyboard.press("/")
        assert page.evaluate(focused) == "search"
        page.keyboard.type("no such")
        page.get_by_text("Nothing matches").first.wait_for()
        page.keyboard.press("Escape")
        lock(page, "deploy").wait_for()
        reached = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(focused))
            if "break" in reached:
                break
        assert "break" in reached, reached
        page.keyboard.press("Enter")
        assert page.evaluate(focused) == "dialog-field"
        page.keyboard.press("Escape")
        assert page.evaluate(focused) == "break", "focus goes back to where it was"
        page.keyboard.press("2")
        page.locator(".card-title").focus()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="First").wait_for()
        opened.assert_quiet()


def a_takeover_is_marked(url, control):
    control.lease(by="mallory", resource="deploy", process=True, ttl_ms=600_000)
    with tab(url) as opened:
        page = opened.open("/timeline")
        page.locator("#view-timeline .span").wait_for()
        control.kill(by="mallory")
        control.guard(by="bob", resource="deploy")
        page.locator("#view-timeline .takeover").wait_for()
        assert page.locator("#view-timeline .cut").count() == 1
        said = page.locator("#view-timeline ul[aria-label=Takeovers]").text_content()
        assert "bob took over" in said and "mallory died" in said, said
        page.get_by_role("button", name="by holder").last.click()
        page.wait_for_function("() => document.querySelectorAll('#view-timeline .row').length === 2")
        opened.assert_quiet()


def a_lapsed_lease_ends_in_the_timeline(url, control):
    control.lease(by="late", resource="deploy", ttl_ms=1_500)
    control.lease(by="alice", resource="other", ttl_ms=600_000)
    control.lease(by="mallory", resource="third", process=True, ttl_ms=600_000)
    control.kill(by="mallory")
    with tab(url) as opened:
        page = opened.open("/timeline")
        page.locator("#view-timeline .span.lapsed").wait_for()
        page.locator("#view-timeline .span.died").wait_for()
        assert page.locator("#view-timeline .span.open").count() == 1
        width = "() => document.querySelector('#view-timeline .span.lapsed rect').width.baseVal.value"
        before = page.evaluate(width)
        open_bar = "() => document.querySelector('#view-timeline .span.open rect').width.baseVal.value"
        growing = page.evaluate(open_bar)
        page.wait_for_function(f"before => ({open_bar})() > before + 4", arg=growing)
        assert page.evaluate(width) <= before + 1, "its lease ended"
        # Taken over long after it ended, it still ended then.
        control.guard(by="bob", resource="deploy")
        page.locator("#view-timeline .takeover").wait_for()
        assert page.evaluate(width) <= before + 1, "its lease ended"
        opened.assert_quiet()


def a_waiter_for_slots_is_counted_once(url, control):
    for label in ("one", "two"):
        control.lease(by=label, resource="gpu", mode="slot:2", ttl_ms=600_000)
    for label in ("three", "four"):
        control.wait(by=label, resource="gpu", mode="slot:2")
    with tab(url) as opened:
        page = opened.open()
        tile = page.locator(".tile", has_text="waiting").locator("b")
        page.wait_for_function("tile => tile.textContent === '2'", arg=tile.element_handle())
        assert page.locator(".queue:not([hidden]) li").count() == 2
        opened.assert_quiet()


def who_finished_a_task_is_shown(url, control):
    control.add(tasks=[{"id": "one", "title": "First"}])
    control.claim(by="alice", task="one")
    control.finish(by="alice", task="one", how="complete")
    with tab(url) as opened:
        page = opened.open("/tasks")
        card = column(page, "completed").locator('[data-id="one"]')
        card.get_by_text("alice").wait_for()
        card.get_by_role("link", name="First").click()
        row = page.locator("#view-task dt", has_text="Finished by")
        row.wait_for()
        assert row.evaluate("row => row.nextElementSibling.textContent") == "alice"
        opened.assert_quiet()


def nothing_there_says_what_to_run(url, control):
    with tab(url, viewport={"width": 390, "height": 844}) as opened:
        page = opened.open()
        page.get_by_text("tenure run deploy -- ./deploy.sh").first.wait_for()
        for key, command in (("2", "tenure tasks add"), ("4", "tenure work"), ("5", "tenure events")):
            page.keyboard.press(key)
            page.locator(".view:not([hidden])").get_by_text(command).wait_for()
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"view {key} is {wide} pixels too wide"
        opened.assert_quiet()


if __name__ == "__main__":
    scenario, page_url, control_url = sys.argv[1:]
    globals()[scenario](page_url, Control(control_url))
