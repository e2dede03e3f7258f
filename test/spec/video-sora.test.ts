import { describe, expect, test } from 'bun:test'
import { formatDollars, parseDollars } from '../../src/base/money.ts'
import { videoGateway } from '../support/ordered-videos.ts'
import { refusedForFree } from '../support/refused.ts'
import { image, media } from '../support/video-asks.ts'

const { post, order, read, cancel, ended, writtenOf, gateway } = videoGateway()

const video = (prompt: string, more: object = {}) => ({ model: 'sora-2', input: { prompt }, ...more })

test('an order is delivered under our link and charged by the seconds in the vendor’s record', async () => {
  const done = await order(video('A fox.', { duration: 8, aspect_ratio: '9:16' }), '?wait=true')
  expect(done).toMatchObject({
    status: 'succeeded',
    object: 'video',
    size: '720x1280',
    usage: { duration: 8, resolution: '720p', aspect_ratio: '9:16' },
    seed: null,
  })
  const link = done.content?.video_url ?? ''
  // The vendor's own link opens only with our credential.
  expect(link).toStartWith(gateway().url)
  const file = await fetch(link)
  expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4'])
  expect(Buffer.from(await file.arrayBuffer()).toString('latin1', 4, 8)).toBe('ftyp')
  const { task, hold, request, attempts, entries, bill } = await writtenOf(done.id)
  const dollars = parseDollars('0.8')
  expect(task).toMatchObject({ state: 'succeeded', vendor: 'openai', upstream_model: 'sora-2', sends: 1 })
  expect(hold).toMatchObject({ state: 'settled', amount: dollars })
  expect(request).toMatchObject({ cost: dollars, basis: 'vendor' })
  expect(attempts).toMatchObject([{ id: task.attempt_id, vendor: 'openai', status: 200, vendor_cost: dollars }])
  expect(entries).toMatchObject({ 'cost:openai': '-0.8', 'payable:openai': '0.8' })
  expect(bill).toEqual(['0.8'])
})

test.each<[object, string]>([
  [{ duration: 4 }, '1.2'],
  [{ duration: 12, resolution: '1792x1024', aspect_ratio: '9:16' }, '6'],
  [{ parameters: { size: '1024x1792', seconds: '8' } }, '4'],
])('sora-2-pro is charged by its seconds and its size: %j', async (more, dollars) => {
  const { id } = await order({ ...video('A fox.', more), model: 'sora-2-pro' }, '?wait=true')
  const { hold, request, bill } = await writtenOf(id)
  expect([formatDollars(hold.amount), formatDollars(request.cost), bill]).toEqual([dollars, dollars, [dollars]])
})

test('a video can begin with an image', async () => {
  expect(await order({ model: 'sora-2', input: media(['first_frame']) }, '?wait=true')).toMatchObject({
    status: 'succeeded',
  })
})

test('a shorter video costs its own seconds, and one without a reported length an estimate', async () => {
  const short = await order(video('A fox. sandbox:seconds=3'), '?wait=true')
  const { hold, request, bill } = await writtenOf(short.id)
  expect([formatDollars(hold.amount), formatDollars(request.cost), bill]).toEqual(['0.4', '0.3', ['0.3']])
  const silent = await order(video('A fox. sandbox:nousage'), '?wait=true')
  expect((await writtenOf(silent.id)).request).toMatchObject({ basis: 'estimated', cost: parseDollars('0.4') })
})

test('a video held back by moderation fails with the vendor’s code and is free', async () => {
  const { id } = await order(video('A fox. sandbox:fail=moderation_blocked'))
  expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'moderation_blocked' }, content: null })
  const { hold, request, attempts, bill } = await writtenOf(id)
  expect(hold.state).toBe('void')
  expect([request.cost, attempts[0]?.vendor_cost]).toEqual([0n, 0n] as never)
  expect(bill).toEqual(['0'])
})

test('the record shows neither the prompt nor the vendor’s address of the video', async () => {
  const { id } = await order(video('A secret fox.'), '?wait=true')
  const shown = JSON.stringify(await read(id))
  for (const word of ['secret', '/content']) expect(shown).not.toContain(word)
})

test('a Sora task cannot be cancelled', async () => {
  const { id } = await order(video('A fox. sandbox:queued=3000'))
  const refused = await cancel(id)
  expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: 'not_cancellable' } }])
  expect((await ended(id)).status).toBe('succeeded')
})

describe('a request that the model does not support', () => {
  test.each<[object, string]>([
    [{ duration: 5 }, 'duration'],
    [{ parameters: { seconds: '6' } }, 'parameters.seconds'],
    [{ duration: 8, parameters: { seconds: '4' } }, 'parameters.seconds'],
    [{ resolution: '1080p' }, 'resolution'],
    [{ resolution: '1792x1024' }, 'resolution'],
    [{ parameters: { size: '1792x1024' } }, 'parameters.size'],
    [{ aspect_ratio: '1:1' }, 'aspect_ratio'],
    [{ parameters: { audio: false } }, 'parameters.audio'],
    [{ parameters: { seed: 7 } }, 'parameters.seed'],
    [{ parameters: { watermark: true } }, 'parameters.watermark'],
    [{ parameters: { negative_prompt: 'dark' } }, 'parameters.negative_prompt'],
    [{ input: { ...media(['first_frame']), prompt: '' } }, 'input.prompt'],
    [{ input: media(['first_frame'], ['last_frame']) }, 'input.media[1].type'],
    [{ input: media(['reference_image']) }, 'input.media[0].type'],
    [{ input: { prompt: 'A fox.', input_reference: { image_url: image } } }, 'input.input_reference'],
  ])('%j is refused with its field named', async (more, param) => {
    const response = await refusedForFree(gateway(), () => post(video('A fox.', more)))
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
  })
})
