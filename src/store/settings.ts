import type { Queries } from './schema.ts'

/** Small facts about this installation, such as the first account of each mode. */
export async function readSetting(db: Queries, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirst()
  return row?.value
}

/** Writes a setting only if it is absent, so that one of several starting nodes decides. Gives the value that holds. */
export async function claimSetting(db: Queries, name: string, value: string): Promise<string> {
  await db
    .insertInto('setting')
    .values({ name, value })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  return (await readSetting(db, name)) ?? value
}

export async function writeSetting(db: Queries, name: string, value: string): Promise<void> {
  await db
    .insertInto('setting')
    .values({ name, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}
