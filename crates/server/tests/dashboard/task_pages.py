"""The page of a task, and actions on one and on many."""

from browser import tab


def a_task_has_a_page_with_attempts_notes_and_graph(url, control):
    control.add(tasks=[
        {"id": "schema", "title": "Draw up the schema"},
        {"id": "store", "title": "Write the store", "depends_on": ["schema"], "description": "All of it."},
        {"id": "api", "title": "Serve the API", "depends_on": ["store"]},
    ])
    with tab(url) as opened:
        page = opened.open("/task/store")
        view = page.locator("#view-task")
        view.get_by_role("heading", name="Write the store").wait_for()
        view.get_by_text("schema").first.wait_for()
        view.get_by_text("It was never claimed.").wait_for()
        # Both directions are in the graph; each task is a link that keys reach.
        graph = view.get_by_role("group", name="Tasks before and after this one")
        assert graph.locator("a").count() == 3
        graph.locator('[data-id="schema"]').focus()
        page.keyboard.press("Enter")
        view.get_by_role("heading", name="Draw up the schema").wait_for()
        # What a worker does appears at once.
        control.claim(by="alice", task="schema")
        view.locator(".attempt", has_text="running").get_by_role("link", name="alice").wait_for()
        view.get_by_label("A note").fill("mind the <b>index</b>")
        view.get_by_role("button", name="Add note").click()
        view.locator(".note", has_text="mind the <b>index</b>").wait_for()
        control.finish(by="alice", task="schema", how="complete")
        view.locator(".attempt", has_text="completed").wait_for()
        view.locator('.event[data-event="completed"]').wait_for()
        assert "alice" in view.locator(".facts-list").inner_text()
        # Exact times on hover, and the id to copy.
        stamp = view.locator(".attempt time")
        assert stamp.get_attribute("datetime") in stamp.get_attribute("title")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        view.get_by_role("button", name="Copy the id").click()
        page.get_by_text("Copied the id.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == "schema"
        opened.assert_quiet()


def a_reviewer_decides_and_an_admin_edits(url, control):
    control.add(tasks=[{"id": "one", "title": "First"}, {"id": "two", "title": "Second"}])
    control.claim(by="alice", task="one")
    control.finish(by="alice", task="one", how="review")
    control.gate(role="work")
    with tab(url) as opened:
        page = opened.open("/task/one")
        view = page.locator("#view-task")
        view.get_by_role("button", name="Reject one").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Reject").click()
        dialog.get_by_text("Say what to change.").wait_for()
        dialog.get_by_label("What to change").fill("once more")
        dialog.get_by_role("button", name="Reject").click()
        view.locator(".task-state", has_text="Pending").wait_for()
        view.get_by_text("once more").first.wait_for()
        control.claim(by="bob", task="one")
        control.finish(by="bob", task="one", how="review")
        view.get_by_role("button", name="Approve one").click()
        view.locator(".task-state", has_text="Completed").wait_for()
        assert view.get_by_role("button", name="Edit").count() == 0, "only for admins"
        opened.assert_quiet()
    control.gate(role="admin")
    with tab(url) as opened:
        page = opened.open("/task/two")
        view = page.locator("#view-task")
        view.get_by_role("button", name="Edit two").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Title").fill("Second, better")
        dialog.get_by_label("Section").fill("docs")
        dialog.get_by_role("button", name="Save").click()
        view.get_by_role("heading", name="Second, better").wait_for()
        view.get_by_role("link", name="docs").wait_for()
        view.get_by_role("button", name="Skip two").click()
        page.get_by_role("dialog").get_by_role("button", name="Skip").click()
        view.locator(".task-state", has_text="Skipped").wait_for()
        opened.assert_quiet()


def many_tasks_are_changed_at_once(url, control):
    control.add(tasks=[
        {"id": f"t{n}", "title": f"Task {n}", "status": "failed" if n < 4 else "pending"} for n in range(6)
    ])
    with tab(url) as opened:
        page = opened.open("/tasks?as=list")
        page.wait_for_function("() => document.querySelectorAll('.task-row').length === 6")
        page.get_by_label("Select all").check()
        page.get_by_text("6 of 6 tasks selected").wait_for()
        page.get_by_label("Select Task 3").uncheck()
        # Another admin is faster with one of them: its outcome is its own.
        page.route("**/v1/tasks/t2/retry", lambda route: route.fulfill(status=409, json={"detail": "it is pending"}))
        page.get_by_role("button", name="Retry 3").click()
        dialog = page.get_by_role("dialog").last
        dialog.get_by_text("2 selected tasks have another status").wait_for()
        dialog.get_by_role("button", name="Retry 3 tasks").click()
        page.get_by_text("2 of 3 pending again, 1 refused.").wait_for()
        outcomes = page.locator(".outcomes")
        assert outcomes.locator("li").count() == 3
        assert "it is pending" in outcomes.locator("li", has_text="Task 2").inner_text()
        page.keyboard.press("Escape")
        for task in ("t0", "t1", "t4", "t5"):
            page.locator(f'.task-row[data-id="{task}"]', has_text="Pending").wait_for()
        for task in ("t2", "t3"):
            page.locator(f'.task-row[data-id="{task}"]', has_text="Failed").wait_for()
        page.get_by_role("combobox", name="Status").select_option("pending")
        page.wait_for_function("() => document.querySelectorAll('.task-row').length === 4")
        page.get_by_label("Select all").check()
        page.get_by_role("button", name="Cancel 4").click()
        page.get_by_role("dialog").last.get_by_role("button", name="Cancel 4 tasks").click()
        page.get_by_text("4 of 4 cancelled.").wait_for()
        page.keyboard.press("Escape")
        page.get_by_text("Nothing matches").wait_for()
        opened.assert_quiet(but=["409"])


def slots_are_one_card(url, control):
    for label in ("one", "two", "three"):
        control.lease(by=label, resource="gpu", mode="slot:3", ttl_ms=600_000)
    control.wait(by="four", resource="gpu", mode="slot:3")
    with tab(url) as opened:
        page = opened.open()
        card = page.locator('.lock[data-resource="gpu"]')
        card.get_by_text("3/3").wait_for()
        assert card.locator(".hold").count() == 3 and page.locator(".lock").count() == 1
        card.locator(".queue li", has_text="four").wait_for()
        control.release(by="two", resource="gpu")
        card.locator(".hold", has_text="four").wait_for()
        card.get_by_text("3/3").wait_for()
        opened.assert_quiet()
