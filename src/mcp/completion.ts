import type { CompleteRequest } from '@modelcontextprotocol/server'
import type { Capability } from '../capabilities/capability.ts'
import { listTasks } from '../store/task-lists.ts'
import { listedStates } from '../tasks/state.ts'
import type { Desk } from './desk.ts'
import { prompts } from './prompts.ts'
import { endpointsOf, readContract } from './reference.ts'
import { modelsFor } from './show-models.ts'

/** The protocol allows a hundred values per completion. */
const valuesMax = 100

/** Completes what the user has typed: values that begin with it come first, then values that contain it. */
export async function complete({ ref, argument }: CompleteRequest['params'], desk: Desk) {
  const typed = argument.value.toLowerCase()
  const all = await candidates(ref, argument.name, desk)
  const held = all.filter((value) => value.toLowerCase().includes(typed))
  const [first, rest] = [held.filter(begins), held.filter((value) => !begins(value))]
  function begins(value: string): boolean {
    return value.toLowerCase().startsWith(typed)
  }
  const values = [...first, ...rest]
  const shown = values.slice(0, valuesMax)
  return { completion: { values: shown, total: values.length, hasMore: values.length > shown.length } }
}

async function candidates(ref: CompleteRequest['params']['ref'], name: string, desk: Desk): Promise<string[]> {
  if (ref.type === 'ref/prompt') {
    const prompt = prompts.find((one) => one.name === ref.name)
    return name === 'model' ? modelIds(desk, prompt?.modelsFor) : []
  }
  switch (ref.uri) {
    case 'turnpike://models/{id}':
      return modelIds(desk)
    case 'turnpike://api/{operation}':
      return endpointsOf(await readContract(desk)).map(({ operationId }) => operationId)
    case 'turnpike://tasks/{id}': {
      const own = { scope: { accountId: desk.principal.accountId }, states: listedStates }
      return (await listTasks(desk.store.db, own, { limit: valuesMax })).map(({ id }) => id)
    }
    default:
      return []
  }
}

function modelIds(desk: Desk, capability?: Capability): string[] {
  return modelsFor(desk)
    .filter(([, model]) => capability === undefined || model.capabilities.includes(capability))
    .map(([id]) => id)
}
