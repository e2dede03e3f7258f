import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { findConformance, openShim, runSuite, type Results } from '../support/mcp-conformance.ts'

const script = findConformance()
// Longer than the suite is given, so that the first test reports why it was ended.
const msMax = 90_000

let gateway: TestGateway
let shim: { url: string; close(): void }

beforeAll(async () => {
  gateway = await startTestGateway()
  shim = await openShim(gateway)
})
afterAll(async () => {
  shim.close()
  await gateway.assertBooks()
  await gateway.close()
})

/**
 * The scenarios of the suite that a server without its fixtures can pass; docs/mcp.md says why the others are left out.
 * `untestable` are checks that fail for want of a diagnostic tool that only a test server has.
 */
const scenarios: readonly { name: string; revisions: readonly string[]; untestable?: readonly string[] }[] = [
  {
    name: 'server-stateless',
    revisions: ['2026-07-28'],
    untestable: [
      'sep-2575-server-rejects-undeclared-capability',
      'sep-2575-missing-capability-http-400',
      'sep-2575-http-server-no-independent-requests-on-stream',
      'sep-2575-server-no-log-without-loglevel',
    ],
  },
  { name: 'http-header-validation', revisions: ['2026-07-28'] },
  { name: 'caching', revisions: ['2026-07-28'] },
  { name: 'sep-2164-resource-not-found', revisions: ['2026-07-28'] },
  { name: 'input-required-result-unsupported-methods', revisions: ['2026-07-28'] },
  { name: 'server-initialize', revisions: ['2025-06-18', '2025-11-25'] },
  { name: 'server-session-lifecycle', revisions: ['2025-11-25'] },
  { name: 'ping', revisions: ['2025-11-25'] },
  { name: 'tools-list', revisions: ['2026-07-28', '2025-11-25'] },
  { name: 'resources-list', revisions: ['2026-07-28', '2025-11-25'] },
  { name: 'prompts-list', revisions: ['2026-07-28', '2025-11-25'] },
  { name: 'completion-complete', revisions: ['2026-07-28', '2025-11-25'] },
  { name: 'dns-rebinding-protection', revisions: ['2026-07-28', '2025-11-25'] },
  { name: 'server-sse-multiple-streams', revisions: ['2026-07-28', '2025-11-25'] },
]

const runs = new Map<string, Promise<Results>>()

/** Of the one run of the suite for a revision. */
function resultsOf(revision: string): Promise<Results> {
  const run = runs.get(revision) ?? runSuite(script ?? '', shim.url, revision)
  runs.set(revision, run)
  return run
}

describe.skipIf(script === undefined)('the MCP conformance suite', () => {
  const cases = scenarios.flatMap(({ name, revisions, untestable = [] }) =>
    revisions.map((revision) => [name, revision, untestable] as const),
  )
  test.each(cases)(
    'the scenario %s of %s passes',
    async (name, revision, untestable) => {
      const checks = (await resultsOf(revision))(name)
      const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
      expect(failed.filter(({ id }) => !untestable.includes(id))).toEqual([])
      for (const { id, errorMessage = '' } of failed)
        expect({ id, errorMessage }).toEqual({ id, errorMessage: expect.stringContaining('Not testable') as never })
      expect(checks.filter(({ status }) => status === 'SUCCESS').length).toBeGreaterThan(0)
    },
    msMax,
  )
})
