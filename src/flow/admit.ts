import { crashPoint } from '../base/crash-points.ts'
import { GatewayError } from '../base/errors.ts'
import { formatDollars, type Nano } from '../base/money.ts'
import type { Billing, Hold, Taken } from '../billing/funds.ts'
import { affordableOutput, holdFor } from '../billing/price.ts'
import type { ChatAsk, ChatTraits } from '../capabilities/chat.ts'
import type { Model } from '../catalogue/model.ts'
import type { Principal } from '../keys/key-ring.ts'
import { leavingAtEnd } from './limit.ts'
import type { Admitted, Limited } from './stages.ts'

// A hold outlives the longest request it can belong to by this much before anyone may call it abandoned.
const deadlineMarginMs = 60_000

/** Reads and checks the request, then sets the money aside: from here on nobody can spend it twice. */
export function makeAdmit(parts: { models: () => ReadonlyMap<string, Model>; billing: Billing; totalMs: number }) {
  return async (limited: Limited): Promise<Admitted> => {
    const { codec, principal, pass } = limited
    const { body, raw } = await limited.readBody()
    const models = parts.models() // one snapshot for the whole request
    let model: Model | undefined
    const ask = codec.readAsk(body, raw.length, (id) => {
      model = findChatModel(models, principal, id)
      return traitsOf(model, id)
    })
    if (model === undefined) throw new GatewayError('bug', 'a request was read without its model')

    await pass.spend(() => codec.estimateInput(ask))
    const hold = await takeHold(limited, ask, model)
    crashPoint('after-hold')
    return { ...limited, ask, model, funds: leavingAtEnd(hold, pass) }
  }

  async function takeHold({ principal, ...received }: Limited, ask: ChatAsk, model: Model): Promise<Hold> {
    const amount = holdFor({ input: ask.inputTokensMax, output: ask.choices * ask.outputTokensMax }, model.prices)
    const taken = await parts.billing.take({
      requestId: received.requestId,
      accountId: principal.accountId,
      keyId: principal.keyId,
      model: ask.model,
      capability: 'chat',
      amount,
      caps: principal.caps,
      priceVersion: model.prices.version,
      startedAt: received.receivedAt,
      deadline: received.receivedAt + parts.totalMs + deadlineMarginMs,
    })
    if (taken.kind === 'no-funds') throw noFunds(amount, taken, ask, model)
    return taken.hold
  }
}

/** A model the key may not use must look exactly like one that does not exist. */
export function findModel(models: ReadonlyMap<string, Model>, principal: Principal, id: string): Model {
  const model = models.get(id)
  if (model === undefined || !principal.mayUse(id)) throw unknownModel(id)
  return model
}

function findChatModel(models: ReadonlyMap<string, Model>, principal: Principal, id: string): Model {
  const model = findModel(models, principal, id)
  if (!model.capabilities.includes('chat')) {
    const message = `The model \`${id}\` does not do chat completions; it is for ${model.capabilities.join(' and ')}.`
    throw new GatewayError('wrong-capability', message, { param: 'model' })
  }
  return model
}

const shownIdCharactersMax = 100

function unknownModel(id: string): GatewayError {
  // The id is the client's own text: shown shortened, and with nothing in it that could break a line of a log.
  const shown = id.slice(0, shownIdCharactersMax).replace(/[^\x20-\x7e]/g, '?')
  const message = `The model \`${shown}\` does not exist or you do not have access to it.`
  return new GatewayError('unknown-model', message, { param: 'model' })
}

function traitsOf(model: Model, id: string): ChatTraits {
  return {
    id,
    contextTokens: model.contextTokens,
    outputTokensMax: model.outputTokensMax,
    choicesMax: model.choicesMax,
    reasoning: model.reasoning,
    efforts: model.efforts,
    sells: (unit) => model.prices.rates[unit] !== undefined,
  }
}

type NoFunds = Exclude<Taken, { kind: 'hold' }>

// `"max_completion_tokens":1000000,`: a client that takes the advice sends a longer body, and must be able to afford it.
const capFieldBytesMax = 32

function noFunds(needed: Nano, { available, cap }: NoFunds, ask: ChatAsk, model: Model): GatewayError {
  const what =
    cap === undefined
      ? 'Insufficient balance'
      : `The spending cap of this ${cap.of.keyId === undefined ? 'account' : 'key'} (${cap.period}) is used up`
  const input = ask.inputTokensMax + capFieldBytesMax
  const affordable = Math.floor(affordableOutput(available, input, model.prices) / ask.choices)
  const advice =
    affordable > 0
      ? `It affords ${affordable} output tokens: lower max_tokens, or add credit.`
      : 'It affords no output tokens for an input of this size: add credit.'
  const message = `${what}: this request needs up to $${formatDollars(needed)} and $${formatDollars(available)} is available. ${advice}`
  return new GatewayError('no-funds', message)
}
