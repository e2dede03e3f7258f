import { ProtocolError, ResourceNotFoundError } from '@modelcontextprotocol/server'
import { unixSeconds } from '../base/moment.ts'
import { decodeId } from '../edge/target.ts'
import { findModel } from '../flow/find-model.ts'
import type { Asking, RouteName, ToolContext } from './tool-context.ts'
import { invalidParams } from './errors.ts'
import { endpointsOf, readContract, writeEndpoint, writeErrors, writeIndex } from './reference.ts'
import { modelPage, modelsFor, showModel } from './show-models.ts'

const markdown = 'text/markdown'
const json = 'application/json'

type Listed = { uri: string; name: string; title: string; description: string; mimeType: string }
type Read = { uri: string; mimeType: string; text: string }

const models: Listed = {
  uri: 'turnpike://models',
  name: 'models',
  title: 'Models',
  description: 'Every model this key may use, with its abilities and prices.',
  mimeType: json,
}
const api: Listed = {
  uri: 'turnpike://api',
  name: 'api',
  title: 'API reference',
  description: 'Every endpoint of the HTTP API, with the address of its page.',
  mimeType: markdown,
}
const errors: Listed = {
  uri: 'turnpike://errors',
  name: 'errors',
  title: 'Errors',
  description: 'Every error, when it comes, and what its status and code are.',
  mimeType: markdown,
}
const usage: Listed = {
  uri: 'turnpike://usage',
  name: 'usage',
  title: 'Usage and balance',
  description: 'What this account has left, and its last 30 days by model.',
  mimeType: json,
}
const tasks: Listed = {
  uri: 'turnpike://tasks',
  name: 'tasks',
  title: 'Recent video tasks',
  description: 'The account’s newest video tasks.',
  mimeType: json,
}

export const templates = [
  {
    uriTemplate: 'turnpike://models/{id}',
    name: 'model',
    title: 'A model',
    description: 'What one model takes, what it costs, and how to call it.',
    mimeType: markdown,
  },
  {
    uriTemplate: 'turnpike://api/{operation}',
    name: 'endpoint',
    title: 'An endpoint',
    description: 'One endpoint of the HTTP API: its fields, its answer, an example.',
    mimeType: markdown,
  },
  {
    uriTemplate: 'turnpike://tasks/{id}',
    name: 'task',
    title: 'A video task',
    description: 'One video task of the account, as it is now.',
    mimeType: json,
  },
] as const

/** One page of the available resources. */
export async function listResources(context: ToolContext, cursor: string | undefined) {
  const endpoints = endpointsOf(await readContract(context)).map(({ operationId, method, path, summary = '' }) => ({
    uri: `turnpike://api/${operationId}`,
    name: operationId,
    title: summary,
    description: `${method} ${path}`,
    mimeType: markdown,
  }))
  const pages = modelsFor(context).map(([id, { capabilities }]) => ({
    uri: `turnpike://models/${id}`,
    name: id,
    title: id,
    description: `Does ${capabilities.join(', ')}.`,
    mimeType: markdown,
  }))
  return pageOf([models, api, errors, usage, tasks, ...endpoints, ...pages], cursor)
}

const pageSize = 100

function pageOf(all: readonly Listed[], cursor: string | undefined) {
  const from = cursor === undefined ? 0 : Number(Buffer.from(cursor, 'base64url').toString())
  if (!Number.isSafeInteger(from) || from < 0) throw new ProtocolError(invalidParams, 'Invalid cursor')
  const to = from + pageSize
  const nextCursor = to < all.length ? { nextCursor: Buffer.from(String(to)).toString('base64url') } : {}
  return { resources: all.slice(from, to), ...nextCursor }
}

/** Reads a resource as the caller may see it. Another account's resource is reported as not found. */
export async function readResource(context: ToolContext, uri: string): Promise<Read> {
  try {
    const read = await find(context, uri)
    if (read !== undefined) return { uri, ...read }
  } catch (thrown) {
    const refused = context.refused(thrown)
    const { kind } = refused.error
    if (kind !== 'unknown-model' && kind !== 'not-found') throw refused
  }
  throw new ResourceNotFoundError(uri)
}

const place = /^turnpike:\/\/([a-z]+)(?:\/([^/?#]+))?$/

async function find(context: ToolContext, uri: string): Promise<Omit<Read, 'uri'> | undefined> {
  const [, kind, written] = place.exec(uri) ?? []
  const name = written === undefined ? undefined : decodeId(written)
  switch (kind) {
    case 'models':
      if (name === undefined) return asJson({ models: modelsFor(context).map(([id, model]) => showModel(id, model)) })
      return { mimeType: markdown, text: modelPage(name, findModel(context.models, context.principal, name)) }
    case 'api': {
      const contract = await readContract(context)
      if (name === undefined) return { mimeType: markdown, text: writeIndex(contract) }
      const endpoint = endpointsOf(contract).find(({ operationId }) => operationId === name)
      return endpoint && { mimeType: markdown, text: writeEndpoint(contract, endpoint) }
    }
    case 'errors':
      return name === undefined ? { mimeType: markdown, text: writeErrors(await readContract(context)) } : undefined
    case 'usage':
      return name === undefined ? asJson(await readUsage(context)) : undefined
    case 'tasks':
      if (name !== undefined) return asJson(await answerOf(context, 'GET /v1/videos/generations/{id}', { id: name }))
      return asJson(await answerOf(context, 'GET /v1/videos/generations', { query: { limit: '20' } }))
    case undefined:
    default:
      return undefined
  }
}

const monthMs = 30 * 24 * 60 * 60 * 1000

async function readUsage(context: ToolContext) {
  const from = String(unixSeconds(context.clock.now() - monthMs))
  const balance = await answerOf(context, 'GET /v1/balance')
  return { balance, usage: await answerOf(context, 'GET /v1/usage', { query: { group_by: 'model', from } }) }
}

async function answerOf(context: ToolContext, route: RouteName, asking?: Asking): Promise<unknown> {
  return (await context.ask(route, asking)).json()
}

function asJson(shown: unknown) {
  return { mimeType: json, text: JSON.stringify(shown, null, 1) }
}
