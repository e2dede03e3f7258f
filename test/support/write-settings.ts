import { openStore } from '../../src/store/open.ts'
import { readSetting, writeSetting } from '../../src/store/settings.ts'

/** A command-line tool beside a running gateway: `file rounds`. */
const [file = '', rounds = '0'] = process.argv.slice(2)
const store = await openStore({ file })
for (let round = 0; round < Number(rounds); round++) {
  await store.transaction(async (tx) => {
    const before = Number((await readSetting(tx, 'counter')) ?? '0')
    await writeSetting(tx, 'counter', String(before + 1))
  })
}
await store.close()
