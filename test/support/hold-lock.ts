import { claimSingleNode } from '../../src/store/single-node.ts'

/** A process that takes the gateway's lock on `folder` and holds it until it is killed. */
const [folder = ''] = process.argv.slice(2)
try {
  claimSingleNode(folder)
  process.stdout.write('held\n')
  setInterval(() => {}, 1_000)
} catch (error) {
  process.stderr.write(String(error))
  process.exit(1)
}
