// Written by `tenure setup opencode`. It asks `tenure hook opencode` before each edit, so that no
// two agents change one file. Without tenure on the PATH it does nothing.

import { spawn } from "node:child_process"

// An answer takes a few milliseconds; a command that hangs must not stop the agent.
const PATIENCE_MS = 5000

// Sends one event to tenure; resolves to its answer, or to {} if there is none.
function ask(event) {
  return new Promise((resolve) => {
    let output = ""
    const command = spawn("tenure", ["hook", "opencode"], {
      cwd: event.directory,
      stdio: ["pipe", "pipe", "inherit"],
      timeout: PATIENCE_MS,
    })
    command.on("error", () => resolve({}))
    command.stdin.on("error", () => {})
    command.stdout.on("data", (chunk) => (output += chunk))
    command.on("close", () => {
      try {
        resolve(JSON.parse(output))
      } catch {
        resolve({})
      }
    })
    command.stdin.end(JSON.stringify(event))
  })
}

export const TenurePlugin = async ({ client, directory }) => {
  // The parent of each session, if it is a subagent's; and what each session was told.
  const parents = new Map()
  const primed = new Map()

  async function parentOf(session) {
    if (!session) return undefined
    if (!parents.has(session)) {
      let parent
      try {
        const found = await client.session.get({ path: { id: session } })
        parent = found?.data?.parentID
      } catch {}
      parents.set(session, parent)
    }
    return parents.get(session)
  }

  async function send(event, session, more) {
    const parent = await parentOf(session)
    return ask({ event, session, parent, directory, ...more })
  }

  async function prime(session) {
    if (!primed.has(session)) primed.set(session, (await send("session.start", session)).context)
    return primed.get(session)
  }

  return {
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID } = input
      // Several sessions and subagents share one MCP server: it is told whose call this is.
      if (tool.startsWith("tenure_") && sessionID && output.args) {
        const parent = await parentOf(sessionID)
        output.args.tenure_session = parent ? `${parent} ${sessionID}` : sessionID
      }
      const answer = await send("tool.execute.before", sessionID, { tool, args: output.args })
      if (answer.deny) throw new Error(answer.deny)
      if (answer.warn) console.error(answer.warn)
    },
    "shell.env": async (input, output) => {
      if (!input.sessionID) return
      const parent = await parentOf(input.sessionID)
      output.env.OPENCODE_SESSION_ID = parent ?? input.sessionID
      if (parent) output.env.OPENCODE_SUBAGENT_SESSION_ID = input.sessionID
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = input.sessionID && (await prime(input.sessionID))
      if (text) output.system.push(text)
    },
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const session = about.sessionID ?? about.info?.id
      if (event.type === "session.idle") await send("session.idle", session)
      if (event.type === "session.compacted") primed.delete(session)
      if (event.type === "session.deleted") {
        if (about.info?.parentID) parents.set(session, about.info.parentID)
        await send("session.deleted", session)
        parents.delete(session)
        primed.delete(session)
      }
    },
  }
}
