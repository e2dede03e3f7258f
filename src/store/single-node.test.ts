import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { claimSingleNode, FolderInUse } from './single-node.ts'

const script = join(import.meta.dir, '../../test/support/hold-lock.ts')

describe('one gateway on a folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-lock-'))
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  test('a second gateway on the folder is refused until the first has ended, even by kill -9', async () => {
    const first = claimSingleNode(folder)
    expect(() => claimSingleNode(folder)).toThrow(FolderInUse)
    expect(() => claimSingleNode(folder)).toThrow('several on one PostgreSQL (DATABASE_URL) have one each')
    const refused = Bun.spawn([process.execPath, script, folder], { stdout: 'pipe', stderr: 'pipe' })
    expect(await new Response(refused.stderr).text()).toContain('Another gateway is running')
    expect(await refused.exited).toBe(1)
    first.release()

    const other = Bun.spawn([process.execPath, script, folder], { stdout: 'pipe', stderr: 'inherit' })
    const { value } = await other.stdout.getReader().read()
    expect(new TextDecoder().decode(value)).toBe('held\n')
    expect(() => claimSingleNode(folder)).toThrow('TURNPIKE_DATA')
    other.kill('SIGKILL')
    await other.exited
    claimSingleNode(folder).release()
  })

  test('the lock is kept even if its handle is garbage-collected', () => {
    claimSingleNode(folder)
    Bun.gc(true)
    expect(() => claimSingleNode(folder)).toThrow(FolderInUse)
  })
})
