import type { ChatAsk, ReplyName } from '../../capabilities/chat.ts'
import type { AssistantBlock, Choice, Reply } from '../../capabilities/conversation.ts'
import { estimateReply } from '../../capabilities/estimate-reply.ts'
import { estimateInput } from './estimate.ts'
import { Output } from './output.ts'
import { requestOf } from './read-conversation.ts'
import { nameOf, openResponse, statusOf } from './response.ts'
import { shownOf } from './shown.ts'
import { offeredTools } from './tools.ts'

/** A reply of any vendor as a response. The protocol has only one choice. */
export function writeAnswer(ask: ChatAsk, reply: Reply, name: ReplyName): Uint8Array {
  const choice: Choice = reply.choices[0] ?? { blocks: [], finish: 'stop' }
  const { finish } = choice
  const output = openOutput(ask, name)
  // Logprobs come for the whole text, and are written with its first block.
  const first = choice.blocks.find(({ kind }) => kind === 'text')
  for (const [index, block] of choice.blocks.entries()) {
    if (block === first && block.kind === 'text') output.say('', choice.logprobs)
    putBlock(output, block, index)
  }
  const status = statusOf(finish)
  output.finish(status)
  const { items } = output
  // Clients calculate with these numbers: where the vendor gave none, they get the estimate that is charged.
  const usage = reply.usage ?? { input: estimateInput(ask), output: estimateReply(reply, ask) }
  return new TextEncoder().encode(openResponse(ask, name)({ status, finish, output: items, usage }))
}

export function openOutput(ask: ChatAsk, name: ReplyName): Output {
  const request = requestOf(ask)
  const offered = offeredTools(request)
  return new Output({
    name: nameOf(name),
    shown: shownOf(request),
    // A model may call a tool that it was not offered; the client gets the call under the name that the model used.
    calledOf: (called) => offered.get(called)?.called ?? { kind: 'function', name: called },
  })
}

function putBlock(output: Output, block: AssistantBlock, index: number): void {
  switch (block.kind) {
    case 'text':
      output.say(block.text)
      for (const citation of block.citations ?? []) output.cite(citation)
      return
    case 'refusal':
      output.refuse(block.text)
      return
    case 'image':
      output.show(block.media)
      return
    case 'thinking':
      output.think(block.text)
      if (block.signature !== undefined) output.sign(block.text, block.signature)
      return
    case 'thinking-redacted':
      output.redact(block.data)
      return
    case 'tool-call':
      output.startCall(index, block)
      output.growCall(index, block.argumentsText)
  }
}
