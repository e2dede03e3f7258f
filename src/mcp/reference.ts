import type { ToolContext } from './tool-context.ts'

/** The parts of the contract at `GET /openapi.json` that are used here. */
export type Contract = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>
    readonly responses: Readonly<Record<string, ErrorResponse>>
  }
}

type Operation = {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly object[]
  readonly requestBody?: { readonly content?: object }
  readonly responses?: Readonly<Record<string, unknown>>
  readonly 'x-codeSamples'?: readonly { readonly lang: string; readonly source: string }[]
}

type ErrorResponse = {
  readonly content?: Readonly<Record<string, { readonly examples?: Readonly<Record<string, ErrorExample>> }>>
}
type ErrorExample = {
  readonly summary?: string
  readonly value?: { readonly error?: { type?: string; code?: string } }
}

export type Endpoint = Operation & { readonly operationId: string; readonly method: string; readonly path: string }

export async function readContract(context: ToolContext): Promise<Contract> {
  return (await (await context.ask('GET /openapi.json')).json()) as Contract
}

export function endpointsOf({ paths }: Contract): Endpoint[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const { operationId } = operation
      return operationId === undefined ? [] : [{ ...operation, operationId, method: method.toUpperCase(), path }]
    }),
  )
}

/** An overview of all endpoints. */
export function writeIndex(contract: Contract): string {
  const rows = endpointsOf(contract).map(
    ({ operationId, method, path, summary = '' }) =>
      `| \`${method} ${path}\` | ${summary} | turnpike://api/${operationId} |`,
  )
  return ['# Endpoints', '', '| endpoint | what | page |', '|---|---|---|', ...rows, ''].join('\n')
}

/** One endpoint, with every schema that it refers to. */
export function writeEndpoint(contract: Contract, endpoint: Endpoint): string {
  const { method, path, summary = '', description = '', parameters = [], requestBody, responses = {} } = endpoint
  const statuses = Object.keys(responses)
  const request = requestBody?.content
  const answer = responses['200'] ?? responses['202']
  const samples = (endpoint['x-codeSamples'] ?? []).slice(0, 1)
  const named = schemasIn(contract, [request, answer])
  const sections = [
    `# ${method} ${path}`,
    `${summary}.`,
    description,
    ...(parameters.length === 0 ? [] : [section('Parameters', parameters)]),
    ...(request === undefined ? [] : [section('Body', request)]),
    ...(answer === undefined ? [] : [section('Answer', answer)]),
    ...(Object.keys(named).length === 0 ? [] : [section('Schemas', named)]),
    ...samples.map(({ lang, source }) => `## Example\n\n\`\`\`${lang.toLowerCase()}\n${source}\n\`\`\``),
    `Statuses: ${statuses.join(', ')}. Errors are explained in turnpike://errors.`,
  ]
  return `${sections.filter((text) => text !== '').join('\n\n')}\n`
}

/** A part of a page that is shown as JSON. */
export function section(title: string, shown: unknown): string {
  return `## ${title}\n\n\`\`\`json\n${JSON.stringify(shown, null, 1)}\n\`\`\``
}

/** The schemas that a value refers to, directly or through other schemas. */
function schemasIn({ components }: Contract, shown: unknown): Record<string, object> {
  const found: Record<string, object> = {}
  const look = (value: unknown) => {
    for (const [, name = ''] of JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      const schema = components.schemas[name]
      if (schema === undefined || name in found) continue
      found[name] = schema
      look(schema)
    }
  }
  look(shown)
  return found
}

/** Every error of the gateway, by status. */
export function writeErrors({ components }: Contract): string {
  const common = Object.entries(components.responses).filter(([name]) => /^Error\d/.test(name))
  const rows = common.flatMap(([name, { content }]) =>
    Object.values(content?.['application/json']?.examples ?? {}).map(({ summary = '', value }) => {
      const { type = '', code = '' } = value?.error ?? {}
      return `| ${name.replace(/\D/g, '')} | \`${type}\` | \`${code}\` | ${summary.replaceAll('|', '\\|')} |`
    }),
  )
  const shape =
    'Errors are `{"error": {"message", "type", "param", "code"}}`; a tool gives the same as text, with `isError`.'
  return ['# Errors', '', shape, '', '| status | type | code | when |', '|---|---|---|---|', ...rows, ''].join('\n')
}
