import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { sql } from 'kysely'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { openStore } from './open.ts'
import { readSetting, writeSetting } from './settings.ts'
import { foldIntoOneFile } from './sqlite.ts'

const newFile = () => join(temporaryFolder('sqlite'), 'turnpike.sqlite')

test('what is deleted from a file, such as the prompt of a video, is erased from it', async () => {
  const file = newFile()
  const prompt = 'A fox in the snow, at dawn.'
  const store = await openStore({ file })
  await writeSetting(store.db, 'prompt', prompt)
  await store.close()
  expect(readFileSync(file).includes(prompt)).toBe(true)
  const again = await openStore({ file })
  await again.db.deleteFrom('setting').where('name', '=', 'prompt').execute()
  await again.close()
  expect(readFileSync(file).includes(prompt)).toBe(false)
})

test('a commit is on the disk before it counts', async () => {
  const store = await openStore({ file: newFile() })
  const { rows } = await sql`select journal_mode, synchronous from pragma_journal_mode, pragma_synchronous`.execute(
    store.db.withoutPlugins(),
  )
  const full = 2n
  expect(rows).toEqual([{ journal_mode: 'wal', synchronous: full }])
  await store.close()
})

test('a database that no other program has open is folded into one file, with what was written last', async () => {
  const file = newFile()
  const [store, other] = [await openStore({ file }), await openStore({ file })]
  expect(await readSetting(other.db, 'name')).toBeUndefined()
  await writeSetting(store.db, 'name', 'late')
  await store.close()
  expect(() => foldIntoOneFile(file)).toThrow(`another program has ${file} open`)
  expect(await readSetting(other.db, 'name')).toBe('late')
  await other.close()
  foldIntoOneFile(file)
  expect(readdirSync(dirname(file))).toEqual([basename(file)])
  const again = await openStore({ file })
  expect(await readSetting(again.db, 'name')).toBe('late')
  await again.close()
})
