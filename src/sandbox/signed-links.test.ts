import { describe, expect, test } from 'bun:test'
import { refuseLink, signLink } from './signed-links.ts'

const link = signLink('http://host/vendor/file.png', 2_000)

describe('a signed link', () => {
  test('a link is valid until it expires, under any host name', () => {
    expect(refuseLink(link, 1_999_999)).toBeUndefined()
    expect(refuseLink(link.replace('host', 'other'), 1_999_999)).toBeUndefined()
  })

  test('an expired link is refused with a 403', async () => {
    const refusal = refuseLink(link, 2_000_000)
    expect(refusal?.status).toBe(403)
    expect(await refusal?.text()).toContain('Request has expired.')
  })

  test.each([
    link.replace('file', 'other'),
    link.replace('Expires=2000', 'Expires=9000'),
    'http://host/vendor/file.png',
  ])('a changed or unsigned link is refused: %s', async (changed) => {
    expect(await refuseLink(changed, 0)?.text()).toContain('SignatureDoesNotMatch')
  })
})
