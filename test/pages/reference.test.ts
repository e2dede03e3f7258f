import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { browserTimeoutMs, hasBrowser, launchBrowser } from '../support/browser.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

describe.skipIf(!hasBrowser)('the reference in a browser', () => {
  let gateway: TestGateway
  let browser: Browser

  beforeAll(async () => {
    gateway = await startTestGateway()
    browser = await launchBrowser()
  }, browserTimeoutMs)
  afterAll(async () => {
    await browser.close()
    await gateway.close()
  })

  async function open(options: BrowserContextOptions): Promise<{ page: Page; asked: string[]; said: string[] }> {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    const asked: string[] = []
    const said: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    page.on('console', (message) => said.push(message.text()))
    await page.goto(`${gateway.url}/`)
    return { page, asked, said }
  }

  test(
    'the page loads nothing else, and its policy does not block its own style',
    async () => {
      const { page, asked, said } = await open({ viewport: { width: 1280, height: 900 } })
      expect(await page.title()).toBe('Turnpike reference')
      expect(asked.filter((url) => !url.startsWith('data:'))).toEqual([`${gateway.url}/`, `${gateway.url}/docs`])
      expect(said).toEqual([])
      // The style is in force: without it the contents would stand above the text, not beside it.
      const contents = await page.getByRole('navigation', { name: 'Contents' }).boundingBox()
      const text = await page.getByRole('main').boundingBox()
      expect((contents?.x ?? 0) + (contents?.width ?? 0)).toBeLessThanOrEqual(text?.x ?? 0)
    },
    browserTimeoutMs,
  )

  test(
    'an endpoint shows its fields, examples and errors',
    async () => {
      const { page } = await open({})
      const section = page.locator('#createChatCompletion')
      expect(await section.getByRole('heading').allInnerTexts()).toEqual([
        'Create a chat completion',
        'Request',
        'Example',
        'Answer',
        'Errors',
      ])
      const fields = section.getByRole('table', { name: 'Fields of the JSON body' })
      expect(await fields.getByRole('rowheader', { name: 'max_completion_tokens' }).count()).toBe(1)
      expect(
        await section.getByRole('table', { name: 'Errors by status' }).getByRole('rowheader', { name: '402' }).count(),
      ).toBe(1)
      for (const label of ['TypeScript', 'Python']) {
        const example = section.locator('details', { hasText: label }).last()
        await section.locator('summary', { hasText: label }).click()
        expect(await example.locator('pre').isVisible()).toBe(true)
      }
    },
    browserTimeoutMs,
  )

  test(
    'the printed page has the full width, and no example is cut off',
    async () => {
      const { page } = await open({ viewport: { width: 1000, height: 900 } })
      await page.emulateMedia({ media: 'print' })
      const measured = await page.evaluate(`({
        left: document.querySelector('main').getBoundingClientRect().left - document.body.getBoundingClientRect().left,
        cut: [...document.querySelectorAll('pre')].filter((each) => each.scrollWidth > each.clientWidth).length,
      })`)
      expect(measured).toEqual({ left: 20, cut: 0 })
    },
    browserTimeoutMs,
  )

  test.each([
    { name: 'a phone', options: { viewport: { width: 360, height: 740 } } },
    { name: 'a phone in dark mode', options: { viewport: { width: 360, height: 740 }, colorScheme: 'dark' as const } },
    { name: 'a wide screen', options: { viewport: { width: 1600, height: 900 } } },
  ])(
    'the page fits and is readable on $name',
    async ({ options }) => {
      const { page } = await open(options)
      const measured = await page.evaluate(`({
        overflow: document.documentElement.scrollWidth - innerWidth,
        text: getComputedStyle(document.body).color,
        ground: getComputedStyle(document.body).backgroundColor,
        size: parseFloat(getComputedStyle(document.querySelector('main p')).fontSize),
      })`)
      const { overflow, text, ground, size } = measured as {
        overflow: number
        text: string
        ground: string
        size: number
      }
      expect(overflow).toBeLessThanOrEqual(0)
      expect(size).toBeGreaterThanOrEqual(16)
      expect(brightness(ground) > brightness(text)).toBe(options.colorScheme !== 'dark')
      expect(Math.abs(brightness(ground) - brightness(text))).toBeGreaterThan(150)
    },
    browserTimeoutMs,
  )
})

/** From 0 to 255, of `rgb(1, 2, 3)`. */
function brightness(color: string): number {
  const [red = 0, green = 0, blue = 0] = [...color.matchAll(/\d+/g)].map(Number)
  return 0.3 * red + 0.6 * green + 0.1 * blue
}
