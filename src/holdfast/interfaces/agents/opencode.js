// holdfast: saves the workspace before OpenCode changes it. "holdfast uninstall opencode" removes this file.
import { spawn } from "node:child_process"

const COMMAND = ["holdfast"]
const LONGEST_MS = 120000
// An upgrade removes the program for a moment.
const TRIES = 10
const BETWEEN_TRIES_MS = 200
const NOT_RUN = `the command ${COMMAND.join(" ")} cannot be run. See: holdfast doctor`
const LATE = `the command ${COMMAND.join(" ")} did not answer`
let toldOf = ""

// Reports once per reason that nothing is saved; the hook reports everything else.
function unprotected(reason, show) {
  if (toldOf === reason) return ""
  toldOf = reason
  show(`Not protected: ${reason}`)
  return `Holdfast is not protecting this session: ${reason}. No checkpoint was made. Tell the user.`
}

// Sends one event to the hook; resolves with the text for the agent. Never rejects, never throws.
async function send(event, show = () => {}) {
  for (let number = 1; ; number += 1) {
    const { text, failure } = await attempt(event, show)
    const enough = failure === LATE || toldOf || number === TRIES
    if (failure && enough) return unprotected(failure, show)
    if (!failure) {
      toldOf = ""
      return text
    }
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_TRIES_MS))
  }
}

function attempt(event, show) {
  return new Promise((resolve) => {
    let said = ""
    const fail = (failure) => {
      clearTimeout(timer)
      resolve({ failure })
    }
    const timer = setTimeout(() => fail(LATE), LONGEST_MS)
    const finish = (text) => {
      clearTimeout(timer)
      resolve({ text })
    }
    try {
      const [program, ...first] = COMMAND
      const child = spawn(program, [...first, "hook", "opencode"], {
        cwd: event.directory,
        stdio: ["pipe", "pipe", "ignore"],
      })
      child.on("error", () => fail(NOT_RUN))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (chunk) => {
        said += chunk
      })
      child.on("close", (status) => {
        if (status !== 0) return fail(NOT_RUN)
        try {
          const answer = JSON.parse(said || "{}")
          if (answer.notice) show(answer.notice)
          finish(answer.context ?? "")
        } catch {
          finish("")
        }
      })
      child.stdin.end(JSON.stringify(event))
    } catch {
      fail(NOT_RUN)
    }
  })
}

function promptOf(parts) {
  return (parts ?? [])
    .filter((part) => part?.type === "text" && typeof part.text === "string")
    .map((part) => part.text)
    .join("\n")
}

export const Holdfast = async ({ directory, worktree, client }) => {
  const where = { directory, worktree: worktree ?? directory }
  const show = (message) => {
    try {
      const shown = client?.tui?.showToast?.({ body: { title: "Holdfast", message, variant: "warning" } })
      shown?.catch?.(() => {})
    } catch {}
  }
  const untold = new Map()
  const remember = (sessionID, text) => {
    if (text) untold.set(sessionID, [...(untold.get(sessionID) ?? []), text])
  }
  return {
    event: async ({ event }) => {
      const kind = event?.type
      if (kind !== "session.created" && kind !== "session.idle" && kind !== "session.deleted") return
      const about = event.properties ?? {}
      const sessionID = about.sessionID ?? about.info?.id
      if (sessionID) remember(sessionID, await send({ ...where, event: kind, sessionID }, show))
    },
    "chat.message": async (input, output) => {
      const prompt = promptOf(output?.parts)
      const { sessionID, messageID } = input
      const text = await send({ ...where, event: "chat.message", sessionID, messageID, prompt }, show)
      // With the message itself, because its answer may need no tool.
      const last = (output?.parts ?? []).findLast((part) => part?.type === "text" && typeof part.text === "string")
      if (text && last) last.text += `\n\n${text}`
      else remember(sessionID, text)
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      remember(sessionID, await send({ ...where, event: "experimental.session.compacting", sessionID }, show))
    },
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input
      const event = { ...where, event: "tool.execute.before", sessionID, tool, callID, tool_input: output?.args ?? {} }
      remember(sessionID, await send(event, show))
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      const event = { ...where, event: "tool.execute.after", sessionID, tool, callID, tool_input: args ?? {} }
      remember(sessionID, await send({ ...event, metadata: output?.metadata ?? {} }, show))
      const texts = untold.get(sessionID)
      if (texts && output && typeof output.output === "string") {
        untold.delete(sessionID)
        output.output += `\n\n${texts.join("\n\n")}`
      }
    },
  }
}
