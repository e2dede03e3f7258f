import { spawn } from 'node:child_process'
import { connect, type Socket } from 'node:net'

const backlog = 1

/**
 * An address on this machine that never answers, not even with a refusal: a listener whose process is stopped and whose
 * connection queue is full, so that the kernel drops every further attempt.
 */
export async function openBlackhole(): Promise<{ baseUrl: string; close(): void }> {
  const script = `require('node:net').createServer(() => {}).listen({ port: 0, host: '127.0.0.1', backlog: ${backlog} },
    function () { console.log(this.address().port) })`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<number>((resolve) => {
    child.stdout.once('data', (bytes: Buffer) => resolve(Number(bytes.toString())))
  })
  child.kill('SIGSTOP')
  const waiting: Socket[] = []
  // Sockets that still fit into the queue connect at once; the first that does not shows that the queue is full.
  for (let isFull = false; !isFull;) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    waiting.push(socket)
    isFull = await new Promise<boolean>((resolve) => {
      const isConnected = () => socket.readyState === 'open'
      // Checked in a later turn, because this process may have been held up and not yet have seen the connect event.
      const timer = setTimeout(() => setTimeout(() => resolve(!isConnected()), 20), 200)
      socket.once('connect', () => {
        clearTimeout(timer)
        resolve(false)
      })
    })
  }
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    close() {
      for (const socket of waiting) socket.destroy()
      child.kill('SIGKILL')
    },
  }
}
