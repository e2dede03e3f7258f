import { createDocument } from 'zod-openapi'
import { GatewayError, type ErrorKind } from '../../src/base/errors.ts'
import type { RequestId } from '../../src/base/ids.ts'
import { chatFields, messageFields } from '../../src/http/openapi/chat-fields.ts'
import { errorNotes, type Concern, type ErrorNote } from '../../src/http/openapi/error-notes.ts'
import { operations, type OperationDocs } from '../../src/http/openapi/operations.ts'
import { responseFields } from '../../src/http/openapi/response-fields.ts'
import { balance, usageReport } from '../../src/http/openapi/usage-schema.ts'
import type { Route } from '../../src/http/routes.ts'
import {
  chatCompletion,
  chatCompletionChunk,
  errorBody,
  imageErrorBody,
  model,
  modelList,
  usage,
} from '../../src/wire/openai/answer-schema.ts'
import { messageError } from '../../src/wire/anthropic/answer-schema.ts'
import { writeError as writeMessagesError } from '../../src/wire/anthropic/errors.ts'
import { writeEitherError } from '../../src/wire/native/errors.ts'
import { writeError, writeErrorWithPlain402 } from '../../src/wire/openai/errors.ts'
import { chatMessage, chatRequest } from '../../src/wire/openai/chat-schema.ts'
import { writeSpeechError } from '../../src/wire/openai/speech-errors.ts'
import { response } from '../../src/wire/responses/answer-schema.ts'
import { responsesRequest } from '../../src/wire/responses/schema.ts'
import type { Document, ErrorExample, Response, Schema } from './types.ts'

const json = 'application/json'
const exampleId = 'req_0123' as RequestId // Fixed, so that the contract is the same whenever it is written.
const about = `One base address and one key in front of every vendor's models. The protocol is the common one of chat completions: official clients work when their base address points here.`

/** The contract, made from the route table, the texts about its routes, and the schemas that check requests. */
export function makeDocument(routes: readonly Route[]): Document {
  const document = createDocument({
    openapi: '3.1.1',
    info: { title: 'Turnpike', version: '1.0.0', description: about },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths: mergedByPath(routes.flatMap(describePath)),
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'A key that begins with `sk-`, issued by the operator.' },
      },
      schemas: {
        ChatCompletionRequest: chatRequest,
        ChatMessage: chatMessage,
        ChatCompletion: chatCompletion,
        ChatCompletionChunk: chatCompletionChunk,
        ResponsesRequest: responsesRequest,
        Response: response,
        Usage: usage,
        Model: model,
        ModelList: modelList,
        UsageReport: usageReport,
        Balance: balance,
        Error: errorBody,
        MessageError: messageError,
        ImageError: imageErrorBody,
      },
      headers: {
        RequestId: {
          description: "The id of this request in the gateway's records; quote it when you ask the operator about it.",
          schema: { type: 'string' },
        },
        Cost: {
          description:
            'What the answer cost, in decimal dollars; 0 on an error. Absent if the answer begins before its cost is known, as most streams do.',
          schema: { type: 'string' },
        },
        RetryAfter: { description: 'Seconds to wait before the next try.', schema: { type: 'integer' } },
        Allow: { description: 'The methods that the path takes.', schema: { type: 'string' } },
        Challenge: { description: 'Always `Bearer realm="turnpike"`.', schema: { type: 'string' } },
      },
    },
  }) as unknown as Document // The same object, typed with only the fields that the reference uses.
  tidy(document)
  const { ChatCompletionRequest, ChatMessage, ResponsesRequest } = document.components.schemas
  annotate(ChatCompletionRequest, chatFields)
  annotate(ResponsesRequest, responseFields)
  for (const variant of ChatMessage?.oneOf ?? []) annotate(variant, messageFields)
  const responses = [...errorsOfShape(commonShape), ...routes.flatMap(errorsOfRoute)]
    .map(({ name, response }) => [name, response] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return { ...document, components: { ...document.components, responses: Object.fromEntries(responses) } }
}

/** A path may take several methods. */
function mergedByPath<T extends object>(described: readonly (readonly [string, T])[]): Record<string, T> {
  const paths: Record<string, T> = {}
  for (const [path, methods] of described) paths[path] = { ...paths[path], ...methods }
  return paths
}

function describePath(route: Route) {
  if (route.docs === undefined) return []
  const { samples, request, ...docs }: OperationDocs = operations[route.docs]
  const operation = {
    operationId: route.docs,
    summary: docs.summary,
    description: docs.description,
    ...(route.auth === 'open' && { security: [] }),
    parameters: [
      ...(route.path.includes('{id}')
        ? [{ ...idParameter, ...(docs.id !== undefined && { description: docs.id }) }]
        : []),
      ...(docs.query ?? []).map((parameter) => ({ ...parameter, in: 'query' as const })),
      ...(docs.once ? [onceParameter] : []),
    ],
    ...(request !== undefined && {
      requestBody: {
        required: true,
        content: { [request.type ?? json]: { schema: request.schema, example: request.example } },
      },
    }),
    responses: {
      '200': describeAnswer(docs.answer),
      ...(docs.accepted !== undefined && { '202': describeAnswer(docs.accepted) }),
      ...Object.fromEntries(
        errorsOfRoute(route).map(({ status, name }) => [status, { $ref: `#/components/responses/${name}` as const }]),
      ),
    },
    'x-codeSamples': [
      { lang: 'Shell', label: 'curl', source: samples.curl },
      { lang: 'TypeScript', label: 'TypeScript', source: samples.typescript },
      { lang: 'Python', label: 'Python', source: samples.python },
    ],
  }
  return [[route.path, { [route.method.toLowerCase()]: operation }] as const]
}

const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'As the list shows it.',
  schema: { type: 'string' },
} as const

const onceParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Makes a repeated request one request for 24 hours: with the same key and body the stored answer comes again, and ' +
    'nothing is charged twice. 1 to 255 visible ASCII characters, such as a UUID.',
  schema: { type: 'string', maxLength: 255 },
} as const

function describeAnswer({ description, schema, types = [json], event, metered }: OperationDocs['answer']) {
  return {
    description,
    headers: {
      'x-request-id': { $ref: '#/components/headers/RequestId' as const },
      ...(metered && { 'x-turnpike-cost': { $ref: '#/components/headers/Cost' as const } }),
    },
    content: {
      ...Object.fromEntries(types.map((type) => [type, { schema }])),
      ...(event !== undefined && { 'text/event-stream': { schema: event } }),
    },
  }
}

type ErrorShape = {
  readonly name: string
  readonly schema: string
  /** The error writers of the routes that have this shape. */
  readonly of: readonly Route['writeError'][]
  readonly write: Route['writeError']
  /** The only status that has this shape, where other statuses of these routes have the common one. */
  readonly only?: number
}

/** The shapes of errors. Most routes have the common shape; images have it too, in one of their forms. */
const commonShape: ErrorShape = { name: 'Error', schema: 'Error', of: [writeError], write: writeError }
const errorShapes: readonly ErrorShape[] = [
  commonShape,
  { name: 'MessageError', schema: 'MessageError', of: [writeMessagesError], write: writeMessagesError },
  { name: 'ImageError', schema: 'ImageError', of: [writeEitherError], write: writeError },
  {
    name: 'PlainError',
    schema: 'Error',
    of: [writeErrorWithPlain402, writeSpeechError],
    write: writeErrorWithPlain402,
    only: 402,
  },
]

function shapeOf({ writeError: write }: Route, status: number): ErrorShape {
  return errorShapes.find(({ of, only = status }) => of.includes(write) && only === status) ?? commonShape
}

const headersOf: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'www-authenticate': 'Challenge' },
  405: { allow: 'Allow' },
  409: { 'retry-after': 'RetryAfter' },
  429: { 'retry-after': 'RetryAfter' },
  503: { 'retry-after': 'RetryAfter' },
}

type WrittenNote = {
  readonly kind: ErrorKind
  readonly note: ErrorNote
  readonly status: number
  readonly body: string
}
type NamedError = { readonly status: number; readonly name: string; readonly response: Response }

/** Every documented error, written by the gateway's own code. */
function writtenIn(shape: ErrorShape): WrittenNote[] {
  return Object.entries(errorNotes).flatMap(([kind, notes]) =>
    notes.map((note) => {
      const { when: _, of: __, message, ...details } = note
      return {
        kind: kind as ErrorKind,
        note,
        ...shape.write(new GatewayError(kind as ErrorKind, message, details), exampleId),
      }
    }),
  )
}

/** All errors of a shape, one response per status. */
function errorsOfShape(shape: ErrorShape): NamedError[] {
  const statuses = new Set(writtenIn(shape).map(({ status }) => status))
  return [...statuses].map((status) => namedError(shape, status, undefined))
}

/** The errors that an operation can give, one response per status. Operations that can give the same share it. */
function errorsOfRoute(route: Route): NamedError[] {
  if (route.docs === undefined) return []
  const docs: OperationDocs = operations[route.docs]
  const concerns = concernsOf(route, docs)
  return [...docs.errors, ...(docs.once ? [409, 422] : []), 500].map((status) =>
    namedError(shapeOf(route, status), status, concerns),
  )
}

function concernsOf({ docs: id, method, path }: Route, docs: OperationDocs): readonly Concern[] {
  const applies = {
    model: docs.request !== undefined || id === 'retrieveModel',
    body: docs.request !== undefined,
    task: path.endsWith('/videos/generations/{id}'),
    cancel: method === 'DELETE',
    once: docs.once === true,
    path: false,
  } satisfies Record<Concern, boolean>
  return (Object.keys(applies) as Concern[]).filter((concern) => applies[concern])
}

/** The response of a status, with its errors of the given concerns, or with all of them. */
function namedError(shape: ErrorShape, status: number, concerns: readonly Concern[] | undefined): NamedError {
  const all = writtenIn(shape).filter((written) => written.status === status)
  const given = all.filter(({ note: { of } }) => of === undefined || (concerns?.includes(of) ?? true))
  // A response with only some errors of its status is named after what they concern: `TaskError404`.
  const [{ of = 'general' } = {}] = given.map(({ note }) => note).toReversed()
  const prefix = given.length === all.length ? '' : `${of.charAt(0).toUpperCase()}${of.slice(1)}`
  return { status, name: `${prefix}${shape.name}${status}`, response: describeErrors(shape, status, given) }
}

function describeErrors(shape: ErrorShape, status: number, given: readonly WrittenNote[]): Response {
  const examples: Record<string, { summary: string; value: ErrorExample }> = {}
  for (const { kind, note, body } of given) {
    const name = note.code ?? kind
    // Examples of the same code get different names; under one name the second would replace the first.
    const free = name in examples ? `${name}-${Object.keys(examples).length + 1}` : name
    examples[free] = { summary: note.when, value: JSON.parse(body) as ErrorExample }
  }
  const headers = Object.entries(headersOf[status] ?? {}).map(([header, ref]) => [
    header,
    { $ref: `#/components/headers/${ref}` },
  ])
  return {
    description: given.map(({ note }) => note.when).join('; or '),
    headers: { 'x-request-id': { $ref: '#/components/headers/RequestId' }, ...Object.fromEntries(headers) },
    content: { [json]: { schema: { $ref: `#/components/schemas/${shape.schema}` }, examples } },
  }
}

function annotate(schema: Schema | undefined, notes: Readonly<Record<string, string>>): void {
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    const description = notes[name]
    if (description !== undefined) field.description = description
  }
}

/**
 * Removes what is true everywhere and would be repeated a hundred times: that integers are bounded by what a double
 * holds, and that objects are open.
 */
function tidy(node: unknown): void {
  if (typeof node !== 'object' || node === null) return
  const schema = node as Schema
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (isEmpty(schema.additionalProperties)) delete schema.additionalProperties
  if (isEmpty(schema.properties)) delete schema.properties
  for (const inner of Object.values(node)) tidy(inner)
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
