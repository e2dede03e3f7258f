import { badRequest, VendorError } from '../chat/errors.ts'
import { commonDialect, oneOf } from '../media/common.ts'
import { decoded } from '../fields.ts'
import type { Call, Protocol, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { answerVideo } from '../video/results.ts'
import { soraCreation, soraTasks } from './create.ts'
import { expiresAt, writeTask } from './record.ts'

/** OpenAI's videos, with the bytes of each at `/content` below it. */
export const soraProtocol: Protocol = (_, root, world) => {
  const path = `${root}/videos`
  const tailOf = (call: Call): string => decoded(call.path.slice(path.length + 1))
  return [
    { method: 'POST', path, answer: (call) => createTask(call, world, soraCreation) },
    { method: 'GET', path, answer: (call) => answerList(call, world) },
    {
      method: 'GET',
      path: `${path}/*`,
      answer(call) {
        const tail = tailOf(call)
        const [, id] = /^([^/]*)\/content$/.exec(tail) ?? []
        return id === undefined ? answerTask(call, world, tail) : answerContent(call, world, id)
      },
    },
    { method: 'DELETE', path: `${path}/*`, answer: (call) => answerDelete(call, world, tailOf(call)) },
  ]
}

function answerTask(call: Call, world: World, id: string): Response {
  return answerFree(call, commonDialect, (refusals) => {
    const task = world.videos.of(soraTasks).poll(id)
    if (!task) throw notFound(id)
    refusePoll(task, refusals)
    return Response.json(writeTask(task))
  })
}

const pageMax = 100
const pageSizeUsual = 20

/** The vendor offers no filter for the caller's own reference. */
function answerList(call: Call, world: World): Response {
  return answerFree(call, commonDialect, () => {
    const query = Object.fromEntries(new URL(call.request.url).searchParams)
    const { after, limit = String(pageSizeUsual) } = query
    if (!/^\d{1,3}$/.test(limit) || Number(limit) > pageMax) {
      throw badRequest(`Invalid 'limit': expected an integer from 0 to ${pageMax}.`, 'limit', 'invalid_value')
    }
    const newest = world.videos.of(soraTasks).list()
    const tasks = oneOf(query, 'order', ['desc', 'asc']) === 'desc' ? newest : newest.toReversed()
    const left = tasks.slice(tasks.findIndex(({ id }) => id === after) + 1)
    const page = left.slice(0, Number(limit))
    const [first, last] = [page[0]?.id ?? null, page.at(-1)?.id ?? null]
    const body = { object: 'list', data: page.map(writeTask), first_id: first, last_id: last }
    return Response.json({ ...body, has_more: left.length > page.length })
  })
}

/** The bytes of the video. Other variants, such as previews, are not made here. */
function answerContent(call: Call, world: World, id: string): Response {
  return answerFree(call, commonDialect, () => {
    const variant = new URL(call.request.url).searchParams.get('variant') ?? 'video'
    if (variant !== 'video') throw badRequest(`Invalid value: '${variant}'.`, 'variant', 'invalid_value')
    const task = world.videos.of(soraTasks).find(id)
    const isThere = task?.state === 'succeeded' && world.videos.clock.now() < expiresAt(task)
    if (!isThere || task.steering.has('no-video')) throw notFound(id)
    return answerVideo(task)
  })
}

/** Deletes a video that has ended. The vendor has no way to stop one that is queued or running. */
function answerDelete(call: Call, world: World, id: string): Response {
  return answerFree(call, commonDialect, () => {
    const tasks = world.videos.of(soraTasks)
    const task = tasks.find(id)
    if (!task) throw notFound(id)
    if (task.endedAt === undefined) throw badRequest('A video that is in progress cannot be deleted.', null)
    tasks.forget(task)
    return Response.json({ id, object: 'video.deleted', deleted: true })
  })
}

function notFound(id: string): VendorError {
  return new VendorError({ status: 404, message: `Video with id '${id}' not found.` })
}
