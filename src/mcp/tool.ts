import type { CallToolResult, ContentBlock, Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { withoutNull } from '../base/json.ts'
import { fieldError } from '../wire/issues.ts'
import type { ToolContext, RouteName } from './tool-context.ts'

/**
 * What a tool returns: blocks that a client can show, and the same as a JSON object that a program can read, in which
 * an undefined field is not sent.
 */
export type Shown = { readonly blocks: readonly ContentBlock[]; readonly structured: Record<string, unknown> }

export type Tool = {
  readonly name: string
  readonly title: string
  /**
   * Read by models: what it is for, what it costs, what to call before and after. No text in it comes from a vendor.
   */
  readonly description: string
  readonly annotations: ToolAnnotations
  readonly input: z.ZodObject
  readonly output: z.ZodObject
  /** The paths that it uses. */
  readonly routes: readonly RouteName[]
  call(given: Record<string, unknown>, context: ToolContext): Promise<Shown>
}

/** Ties the arguments of a tool to the schema that has checked them. */
export function tool<I extends z.ZodObject>(
  made: Omit<Tool, 'input' | 'call'> & {
    readonly input: I
    call(given: z.output<I>, context: ToolContext): Promise<Shown>
  },
): Tool {
  return { ...made, call: (given, context) => made.call(given as z.output<I>, context) }
}

/** Spends money and changes nothing else. A client should ask its user first. */
export const spending = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true }
export const reading = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

/**
 * The tool as `tools/list` shows it, without `$schema`, which only names the default dialect and breaks older clients.
 */
export function describe({ name, title, description, annotations, input, output }: Tool): ListedTool {
  return {
    name,
    title,
    description,
    inputSchema: jsonSchema(input, 'input'),
    outputSchema: jsonSchema(output, 'output'),
    annotations: { title, ...annotations },
  }
}

function jsonSchema(schema: z.ZodObject, io: 'input' | 'output'): ListedTool['inputSchema'] {
  const { $schema: _, ...written } = z.toJSONSchema(schema, { io })
  // Both types describe JSON Schema, but neither library knows the other's.
  return { ...written, type: 'object' } as ListedTool['inputSchema']
}

/**
 * Runs a tool. Any failure becomes a result in the wording of the path, so that a model can read it and correct itself.
 */
export async function callTool(
  called: Tool,
  given: Record<string, unknown>,
  context: ToolContext,
): Promise<CallToolResult> {
  try {
    // Some clients, and some models, give every argument that they leave out as null. Every path treats that as absent.
    const parsed = called.input.safeParse(withoutNull(given))
    if (!parsed.success) return await context.counted(() => Promise.reject(fieldError(parsed.error, given)))
    const { blocks, structured } = await called.call(parsed.data, context)
    return {
      content: [...blocks, { type: 'text', text: JSON.stringify(structured) }],
      structuredContent: structured,
      _meta: metaOf(context.requestId),
    }
  } catch (thrown) {
    return refusal(thrown, context)
  }
}

/** An answer that failed after part of it was delivered and paid for. */
export class CutShort extends Error {
  readonly blocks: readonly ContentBlock[]
  /** The error's body as the path wrote it. */
  readonly body: string

  constructor(blocks: readonly ContentBlock[], body: string) {
    super('cut short')
    this.name = 'CutShort'
    this.blocks = blocks
    this.body = body
  }
}

function refusal(thrown: unknown, context: ToolContext): CallToolResult {
  if (thrown instanceof CutShort) {
    const content = [...thrown.blocks, { type: 'text' as const, text: thrown.body }]
    return { content, isError: true, _meta: metaOf(context.requestId) }
  }
  const { written, requestId } = context.refused(thrown)
  // A retry would buy again what the vendor may already have been paid for.
  const isFinal = written.headers['x-should-retry'] === 'false'
  const retryAfter = isFinal ? undefined : written.headers['retry-after']
  return {
    content: [{ type: 'text', text: written.body }],
    isError: true,
    _meta: {
      ...metaOf(requestId),
      'turnpike/status': written.status,
      ...(retryAfter !== undefined && { 'turnpike/retry_after': Number(retryAfter) }),
    },
  }
}

function metaOf(requestId: string) {
  return { 'turnpike/request_id': requestId }
}

/** The cost, as every paid answer reports it. */
export const costField = z
  .string()
  .optional()
  .meta({ description: 'What it cost, in dollars, where that is known yet.' })

export function costOf(response: Response): string | undefined {
  return response.headers.get('x-turnpike-cost') ?? undefined
}

export const modelField = (capability: string, example: string) =>
  z
    .string()
    .min(1)
    .meta({ description: `Id of a model that does ${capability}; \`list_models\` names them.`, examples: [example] })

export function fileLink(url: string, name: string, mimeType: string): ContentBlock {
  return { type: 'resource_link', uri: url, name, mimeType }
}
