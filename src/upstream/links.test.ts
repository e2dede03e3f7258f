import { expect, test } from 'bun:test'
import type { FetchLimits, GuardedFetch } from '../base/guarded-fetch.ts'
import { makeFetchLink } from './links.ts'

const vendor = { baseUrl: 'https://vendor.example' }
const { signal } = new AbortController()

test("a client's link keeps the guard's own bounds on time", async () => {
  const asked: FetchLimits[] = []
  const strangers: GuardedFetch = {
    check: async () => {},
    async get(_url, limits) {
      asked.push(limits)
      return { status: 200, mediaType: 'image/png', body: Uint8Array.of(1) }
    },
    post: () => Promise.reject(new Error('a link is only fetched')),
  }
  const fetchLink = makeFetchLink(strangers)
  const link = { transport: 'guarded', url: 'https://h/a.png', bytesMax: 5 } as const
  expect(await fetchLink(link, vendor, signal)).toMatchObject({ mediaType: 'image/png' })
  expect(asked).toEqual([{ bytesMax: 5, signal }])
})
