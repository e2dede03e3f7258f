import type { Queries } from '../../src/store/schema.ts'

/** Something small to write, of which the next writer may say something else. */
export async function writeSetting(db: Queries, name: string, value: string): Promise<void> {
  await db
    .insertInto('setting')
    .values({ name, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}
