import { reportTo } from './control.ts'
import { vendorKey } from './fixtures.ts'

/**
 * Two baselines for uploads. `bare` reads the form's bytes, replaces the key, and sends them on. `parsing` lets the
 * runtime parse the form and write it again, the least that any program must do that looks into a form.
 */
const [upstream = '', manner = 'bare'] = process.argv.slice(2)

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 65,
  async fetch(request) {
    if (request.method === 'GET') return new Response('ok')
    const authorization = `Bearer ${vendorKey}`
    const answer = await fetch(`${upstream}/v1/images/edits`, {
      method: 'POST',
      ...(manner === 'parsing'
        ? { headers: { authorization }, body: await request.formData() }
        : {
            headers: { authorization, 'content-type': request.headers.get('content-type') ?? '' },
            body: await request.bytes(),
          }),
    })
    return new Response(answer.body, { status: answer.status, headers: { 'content-type': 'application/json' } })
  },
})

reportTo(process, server.port ?? 0)
