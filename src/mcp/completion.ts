import type { CompleteRequest } from '@modelcontextprotocol/server'
import type { Capability } from '../capabilities/capability.ts'
import { listTasks } from '../store/task-lists.ts'
import { listedStates } from '../tasks/state.ts'
import type { ToolContext } from './tool-context.ts'
import { prompts } from './prompts.ts'
import { endpointsOf, readContract } from './reference.ts'
import { modelsFor } from './show-models.ts'

/** The protocol allows a hundred values per completion. */
const valuesMax = 100

/** Completes what the user has typed: values that begin with it come first, then values that contain it. */
export async function complete({ ref, argument }: CompleteRequest['params'], context: ToolContext) {
  const typed = argument.value.toLowerCase()
  const all = await candidates(ref, argument.name, context)
  const held = all.filter((value) => value.toLowerCase().includes(typed))
  const [first, rest] = [held.filter(begins), held.filter((value) => !begins(value))]
  function begins(value: string): boolean {
    return value.toLowerCase().startsWith(typed)
  }
  const values = [...first, ...rest]
  const shown = values.slice(0, valuesMax)
  return { completion: { values: shown, total: values.length, hasMore: values.length > shown.length } }
}

async function candidates(
  ref: CompleteRequest['params']['ref'],
  name: string,
  context: ToolContext,
): Promise<string[]> {
  if (ref.type === 'ref/prompt') {
    const prompt = prompts.find((one) => one.name === ref.name)
    return name === 'model' ? modelIds(context, prompt?.modelsFor) : []
  }
  switch (ref.uri) {
    case 'turnpike://models/{id}':
      return modelIds(context)
    case 'turnpike://api/{operation}':
      return endpointsOf(await readContract(context)).map(({ operationId }) => operationId)
    case 'turnpike://tasks/{id}': {
      const own = { scope: { accountId: context.principal.accountId }, states: listedStates }
      return (await listTasks(context.store.db, own, { limit: valuesMax })).map(({ id }) => id)
    }
    default:
      return []
  }
}

function modelIds(context: ToolContext, capability?: Capability): string[] {
  return modelsFor(context)
    .filter(([, model]) => capability === undefined || model.capabilities.includes(capability))
    .map(([id]) => id)
}
