/** As much of OpenAPI and JSON Schema as our own document uses. */
export type Schema = {
  $ref?: string
  type?: string | readonly string[]
  title?: string
  description?: string
  properties?: Record<string, Schema>
  required?: readonly string[]
  additionalProperties?: Schema
  items?: Schema
  anyOf?: readonly Schema[]
  oneOf?: readonly Schema[]
  enum?: readonly string[]
  const?: string
  minimum?: number
  maximum?: number
  maxItems?: number
  maxLength?: number
}

type Content = Record<
  string,
  { schema: Schema; example?: unknown; examples?: Record<string, { summary: string; value: ErrorExample }> }
>
export type ErrorExample = { error: { message: string; type?: string; param?: string | null; code?: string } }

export type Response = {
  description: string
  headers: Record<string, { $ref: string }>
  content: Content
}
export type Responses = Record<string, Response>

export type Operation = {
  operationId: string
  summary: string
  description: string
  parameters: readonly { name: string; in: string; description: string; required?: true; schema: Schema }[]
  requestBody?: { content: Content }
  responses: Record<string, Response | { $ref: string }>
  'x-codeSamples': readonly { lang: string; label: string; source: string }[]
}

export type Document = {
  openapi: string
  info: { title: string; version: string; description: string }
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    headers: Record<string, { description: string }>
    responses: Responses
  }
}
