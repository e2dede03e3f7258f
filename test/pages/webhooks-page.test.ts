import { afterAll, beforeAll, expect, test } from 'bun:test'
import { freePort } from '../support/free-port.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'

const page = await Bun.file(new URL('../../docs/webhooks.md', import.meta.url)).text()

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
})

test.skipIf(Bun.which('curl') === null || Bun.which('node') === null)(
  'the first example of docs/webhooks.md, pasted as it stands, shows an event',
  async () => {
    const example = /```sh\n([^]*?)```/.exec(page)?.[1] ?? ''
    const port = await freePort()
    // The receiver stays behind its shell, and is ended with it.
    const pasted = `${example.replaceAll('9000', String(port))}\nwait`
    const child = Bun.spawn(['bash', '-c', pasted], {
      env: { PATH: process.env['PATH'] ?? '', TURNPIKE_URL: gateway.url, TURNPIKE_KEY: gateway.key },
      stdout: 'pipe',
      stderr: 'ignore',
      detached: true,
    })
    let printed = ''
    const collecting = (async () => {
      for await (const bytes of child.stdout) printed += new TextDecoder().decode(bytes)
    })()
    try {
      await until(() => printed.includes('"type":"video.generation.succeeded"') || child.exitCode !== null)
      expect(printed).toContain('"type":"video.generation.succeeded"')
    } finally {
      process.kill(-child.pid, 'SIGKILL')
      await child.exited
      await collecting
    }
  },
  120_000,
)
