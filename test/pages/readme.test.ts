import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

const readme = await Bun.file(new URL('../../README.md', import.meta.url)).text()

/** What Claude Code asks for when nobody tells it what. */
const itsDefault = 'claude-opus-5-5'

const ask = (gateway: TestGateway, model: string | undefined) =>
  fetch(`${gateway.url}/v1/models/${model}`, { headers: { authorization: `Bearer ${gateway.key}` } })

describe('README’s line for Claude Code', () => {
  const chosen = /ANTHROPIC_MODEL=(\S+) claude/.exec(readme)?.[1]

  let real: TestGateway
  let sandbox: TestGateway
  beforeAll(async () => {
    real = await startTestGateway({ variables: { ANTHROPIC_API_KEY: 'not-used' } })
    sandbox = await startTestGateway()
  })
  afterAll(() => Promise.all([real.close(), sandbox.close()]))

  test('names a model that is sold in both modes', async () => {
    for (const gateway of [real, sandbox]) expect((await ask(gateway, chosen)).status).toBe(200)
  })

  test('without it the refusal says who can help', async () => {
    expect((await ask(sandbox, itsDefault)).status).toBe(200)
    const body = { model: itsDefault, max_tokens: 10, messages: [{ role: 'user', content: 'Hello!' }] }
    const refused = await real.post('/v1/messages', body)
    expect(refused.status).toBe(404)
    expect(await refused.json()).toMatchObject({
      error: { message: `The model \`${itsDefault}\` has no price here, and is not sold until the operator sets one.` },
    })
  })
})
