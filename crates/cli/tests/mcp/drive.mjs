// Drives tenure's MCP server with the official TypeScript SDK.
//
//     node drive.mjs stdio TENURE STORE
//     node drive.mjs http URL [TOKEN]
//
// NODE_FOLDER names the folder in which the SDK is installed. Says `fine` at the end.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(`${process.env.NODE_FOLDER}/package.json`)
const sdk = (part) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${part}`)).href)
const { Client } = await sdk('client/index.js')
const { StdioClientTransport } = await sdk('client/stdio.js')
const { StreamableHTTPClientTransport } = await sdk('client/streamableHttp.js')

const [how, ...rest] = process.argv.slice(2)

function transport() {
  if (how === 'stdio') {
    const [command, store] = rest
    return new StdioClientTransport({ command, args: ['--store', store, 'mcp'] })
  }
  const [url, token] = rest
  const headers = token ? { Authorization: `Bearer ${token}` } : {}
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
}

async function connect() {
  const client = new Client({ name: 'typescript-sdk', version: '1' })
  const over = transport()
  await client.connect(over)
  const end = async () => {
    // Over HTTP a session ends only if that is said.
    if (over.terminateSession) await over.terminateSession()
    await client.close()
  }
  return { client, end }
}

async function ask({ client }, name, args = {}, options = {}) {
  const result = await client.callTool({ name, arguments: args }, undefined, options)
  const answer = result.structuredContent
  assert.deepEqual(JSON.parse(result.content[0].text), answer)
  assert.doesNotMatch(result.content[0].text, /force|break/i)
  return { answer, refused: Boolean(result.isError) }
}

async function must(agent, name, args = {}, options = {}) {
  const { answer, refused } = await ask(agent, name, args, options)
  assert.ok(!refused && answer.success, `${name}: ${JSON.stringify(answer)}`)
  return answer
}

// Starts to wait, and returns once the server said that it does.
async function wait(agent, name, args) {
  const calling = new AbortController()
  let tell
  const told = new Promise((resolve) => (tell = resolve))
  const options = {
    signal: calling.signal,
    onprogress: ({ message }) => tell(message),
    timeout: 120_000,
  }
  const answer = ask(agent, name, { ...args, wait_seconds: 120 }, options)
  const ended = answer.then(() => { throw new Error(`${name} ended without a wait`) })
  const message = await Promise.race([told, ended])
  ended.catch(() => {})
  return { answer, message, cancel: () => calling.abort('enough') }
}

const a = await connect()
const b = await connect()

const { tools } = await a.client.listTools()
assert.equal(tools.length, 17)
for (const tool of tools) assert.equal(tool.inputSchema.type, 'object')

const { task_id: id } = await must(a, 'create_task', { description: 'Write it', files: ['src/**'] })
const { task } = await must(a, 'claim_task', { agent_id: 'same' })
assert.equal(task.id, id)
const none = await ask(b, 'claim_task', { agent_id: 'same', task_id: id })
assert.ok(!none.refused && !none.answer.success, JSON.stringify(none))
const theirs = await ask(b, 'fail_task', { agent_id: 'same', task_id: id, error: 'not mine' })
assert.ok(theirs.refused && theirs.answer.code === 'NOT_YOURS', JSON.stringify(theirs))
const { holding } = await must(a, 'heartbeat')
assert.deepEqual(holding.map((hold) => hold.resource).sort(), ['path:src/**', `task:${id}`])

// The files of the task are held with it.
const files = await wait(b, 'acquire_lock', { resources: ['path:src/main.rs'] })
assert.match(files.message, /held by same\//)
await must(a, 'complete_task', { task_id: id, output: { lines: 12 } })
assert.ok((await files.answer).answer.success)

const cancelled = await wait(a, 'acquire_lock', { resources: ['path:src/**'] })
cancelled.cancel()
await assert.rejects(cancelled.answer)
for (;;) {
  const { waiting } = await must(b, 'who_holds')
  if (waiting.length === 0) break
  await new Promise((resolve) => setTimeout(resolve, 50))
}

const next = await wait(a, 'claim_task', {})
await must(b, 'create_tasks_batch', { tasks: [{ id: 'one', description: 'One' }] })
assert.equal((await next.answer).answer.task.id, 'one')
const { results } = await must(b, 'get_results', {})
assert.deepEqual(results[0].result, { output: { lines: 12 } })

const { resources } = await a.client.listResources()
assert.equal(resources.length, 2)
const { contents } = await a.client.readResource({ uri: 'coordination://status' })
assert.equal(JSON.parse(contents[0].text).tasks.in_progress, 1)

// What a session held goes with it: its task is handed back untouched.
await a.end()
const back = await must(b, 'claim_task', { task_id: 'one', wait_seconds: 60 })
assert.equal(back.task.attempts, 1)
await b.end()
console.log('fine')
process.exit(0)
