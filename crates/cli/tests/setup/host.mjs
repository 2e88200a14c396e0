// Plays the program of an agent: reads its configuration in the current folder, asks the hooks that
// match its edit tool, and writes src/main.rs unless one of them refuses.
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync, copyFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

const [host, session, content] = process.argv.slice(2)
const root = process.cwd()
const file = `${root}/src/main.rs`
const patch = "*** Begin Patch\n*** Update File: src/main.rs\n@@\n-a\n+b\n*** End Patch\n"

// Where each host has its hooks, what it calls the event and its edit tool, and its own input.
const HOSTS = {
  "claude-code": {
    config: ".claude/settings.json",
    event: "PreToolUse",
    tool: "Edit",
    input: { session_id: session, cwd: root, tool_input: { file_path: file } },
    refusal: (answer) => decision(answer.hookSpecificOutput),
  },
  codex: {
    config: ".codex/hooks.json",
    event: "PreToolUse",
    tool: "apply_patch",
    input: { session_id: session, cwd: root, tool_input: { command: patch } },
    refusal: (answer) => decision(answer.hookSpecificOutput),
  },
  cursor: {
    config: ".cursor/hooks.json",
    event: "preToolUse",
    tool: "Write",
    input: { conversation_id: session, workspace_roots: [root], tool_input: { file_path: file } },
    refusal: (answer) => (answer.permission === "deny" ? answer.agent_message : undefined),
  },
  gemini: {
    config: ".gemini/settings.json",
    event: "BeforeTool",
    tool: "replace",
    input: { session_id: session, cwd: root, tool_input: { file_path: file } },
    refusal: (answer) => (answer.decision === "deny" ? answer.reason : undefined),
  },
}

const decision = (output) =>
  output?.permissionDecision === "deny" ? output.permissionDecisionReason : undefined

// A list of groups with hooks, or of hooks.
function commands({ config, event, tool }) {
  if (!existsSync(config)) return []
  const entries = JSON.parse(readFileSync(config, "utf8")).hooks?.[event] ?? []
  const matching = entries.filter(({ matcher }) => new RegExp(`^(?:${matcher ?? ".*"})$`).test(tool))
  return matching.flatMap((entry) => entry.hooks ?? [entry]).map((hook) => hook.command)
}

function ask(command, { event, tool, input, refusal }) {
  const message = JSON.stringify({ hook_event_name: event, tool_name: tool, ...input })
  const ended = spawnSync("/bin/sh", ["-c", command], { input: message, encoding: "utf8" })
  if (ended.stderr) process.stderr.write(ended.stderr)
  if (ended.status === 2) return ended.stderr
  return ended.stdout.trim() ? refusal(JSON.parse(ended.stdout)) : undefined
}

async function plugin() {
  const source = ".opencode/plugins/tenure.js"
  if (!existsSync(source)) return { found: false }
  // opencode takes every plugin as a module; node goes by the name.
  copyFileSync(source, "../plugin.mjs")
  const module = await import(pathToFileURL(`${root}/../plugin.mjs`))
  const client = { session: { get: async () => ({ data: {} }) } }
  const [make] = Object.values(module)
  const hooks = await make({ client, directory: root, worktree: root })
  try {
    const input = { tool: "write", sessionID: session, callID: "1" }
    await hooks["tool.execute.before"]?.(input, { args: { filePath: file, content } })
    return { found: "tool.execute.before" in hooks }
  } catch (error) {
    return { found: true, refused: error.message }
  }
}

async function answer() {
  if (host === "opencode") return plugin()
  const asked = commands(HOSTS[host])
  const refused = asked.map((command) => ask(command, HOSTS[host])).find(Boolean)
  return { found: asked.length > 0, refused }
}

const result = await answer()
if (!result.refused) writeFileSync(file, content)
console.log(JSON.stringify(result))
