import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
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

test.skipIf(Bun.which('bash') === null || Bun.which('curl') === null).each([
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
    writeFileSync(join(place, 'lighthouse.png'), drawImage({ width: 256, height: 256, format: 'png', seed: 1 }))
    // Without the first, curl takes a refusal for a success.
    writeFileSync(join(place, '.curlrc'), 'fail-with-body\nsilent\nshow-error\nwrite-out "\\n%{http_code}\\n"\n')
    const child = Bun.spawn(['bash', '-e', '-c', example], {
      cwd: place,
      env: {
        PATH: process.env['PATH'] ?? '',
        CURL_HOME: place,
        TURNPIKE_URL: gateway.url,
        TURNPIKE_KEY: gateway.key,
      },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [said, complaints] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    expect({ exit: child.exitCode, complaints }).toEqual({ exit: 0, complaints: '' })
    expect(said.match(/^20[02]$/gm)).toHaveLength(requests)
  },
  runMs,
)
