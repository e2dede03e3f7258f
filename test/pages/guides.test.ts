import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { furnish, hasShell, runExample } from '../support/reader.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A shell and curl are started for each, which takes seconds on a busy machine. */
const runMs = 60_000

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(async () => {
  await until(async () => (await videos()).every(({ status }) => status === 'succeeded'))
  await gateway.assertBooks()
  await gateway.close()
})

async function videos(): Promise<readonly { readonly status: string }[]> {
  const headers = { authorization: `Bearer ${gateway.key}` }
  const response = await fetch(`${gateway.url}/v1/videos/generations`, { headers })
  return ((await response.json()) as { data: { status: string }[] }).data
}

test.skipIf(!hasShell).each([
  ['images', 3],
  ['speech', 1],
  ['embeddings', 1],
  ['video-requests', 1],
  ['responses', 1],
])(
  'the first example of docs/%s.md works as it stands, in each of its %d requests',
  async (name, requests) => {
    const page = await Bun.file(new URL(`../../docs/${name}.md`, import.meta.url)).text()
    const example = /```sh\n([^]*?)```/.exec(page)?.[1] ?? ''
    const place = temporaryFolder(`guide-${name}`)
    furnish(place, ['write-out "\\n%{http_code}\\n"'])
    const said = await runExample(['bash', '-e', '-c', example], { gateway, folder: place })
    expect(said.match(/^20[02]$/gm)).toHaveLength(requests)
  },
  runMs,
)
