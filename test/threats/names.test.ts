import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCli, type Cli } from '../support/cli.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// The name server is set in one file for the whole machine. A process can be given another file where root may mount
// it.
const canMount = spawnSync('unshare', ['-m', 'mount', '--bind', '/etc/hosts', '/etc/resolv.conf']).status === 0
const nameServer = '127.53.53.53'
const linkTo = (url: string) => [{ type: 'image_url', image_url: { url } }]
const statusOf = ({ status }: Response) => status

// S-07, before any server is reached.
describe.skipIf(!canMount)('host names whose name server does not answer', () => {
  let folder: string
  let silent: Socket
  let cli: Cli
  beforeAll(async () => {
    folder = temporaryFolder('names')
    silent = createSocket('udp4')
    await new Promise<void>((resolve) => silent.bind(53, nameServer, resolve))
    const settings = join(folder, 'resolv.conf')
    // Each look-up lasts for longer than the test: a request that waits for one does not finish by its end.
    writeFileSync(settings, `nameserver ${nameServer}\noptions timeout:30 attempts:5\n`)
    mkdirSync(join(folder, 'bin'))
    const installed = join(import.meta.dir, '../../bin/turnpike')
    const inside = `mount --bind ${settings} /etc/resolv.conf && exec ${installed} "$@"`
    writeFileSync(join(folder, 'bin/turnpike'), `#!/bin/sh\nexec unshare -m sh -c '${inside}' turnpike "$@"\n`)
    chmodSync(join(folder, 'bin/turnpike'), 0o755)
    cli = makeCli({ installed: folder })
  })
  afterAll(async () => {
    await cli.close()
    silent.close()
  })

  test('pending look-ups do not hold up other requests whose charge has to be made durable', async () => {
    cli.write('turnpike.yaml', 'billing: { sync: always }')
    const gateway = await cli.serve()
    // More than there are threads, each under a name of its own.
    const links = Array.from({ length: 200 }, (_, at) => {
      const content = linkTo(`https://host-${at}.silent.test/a.png`)
      const messages = [{ role: 'user', content }]
      return gateway.chat({ model: 'gemini-2.5-flash', messages }).then(statusOf, () => 'cut off') // as the test ends
    })
    // Once the first of them is refused with a 503, as many look-ups are under way as are allowed.
    await Promise.any(links.map(async (status) => expect(await status).toBe(503)))
    expect(statusOf(await gateway.chat())).toBe(200)
  }, 120_000)
})
