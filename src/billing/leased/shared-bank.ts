import { openNotices } from '../../store/notices.ts'
import type { Store } from '../../store/open.ts'
import { makeStoreBank, type Bank } from './bank.ts'

const recallChannel = 'lease_recall'

/** The bank on a database that several nodes share: before a 402, the other nodes give back what they do not use. */
export function makeSharedBank(store: Store, url: string): Bank {
  const listeners: ((accountId: string) => void)[] = []
  const notices = openNotices(url, recallChannel, (accountId) => {
    for (const listen of listeners) listen(accountId)
  })
  return {
    ...makeStoreBank(store),
    recall: (accountId) => notices.send(accountId),
    onRecall: (listen) => listeners.push(listen),
    close: () => notices.close(),
  }
}
