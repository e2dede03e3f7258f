import { lstatSync, readlinkSync, realpathSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'

const settleMs = 200
// As many symbolic links as Linux follows; the path of a file that could be read has fewer.
const linksMax = 40

type Watched = {
  readonly changed: () => void
  /** Called where a folder cannot be watched, so that changes in it are not seen. */
  readonly cannot: (folder: string, thrown: unknown) => void
}

/**
 * Watches the file's folder, because editors write a file in several steps and some replace it, and reports a change
 * once they are done. The file may be a symbolic link, and changes with every link on the way to it.
 */
export function watchFile(path: string, { changed, cannot }: Watched): void {
  const watchers = new Map<string, FSWatcher>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let places = placesOf(path)

  function follow(): void {
    for (const [folder, watcher] of watchers) {
      if (places.has(folder)) continue
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of places.keys()) {
      if (watchers.has(folder)) continue
      try {
        const watcher = watch(folder, (_event, name) => {
          if (places.get(folder)?.has(name ?? '') === true) settle()
        })
        watcher.unref()
        watchers.set(folder, watcher)
      } catch (thrown) {
        cannot(folder, thrown)
      }
    }
  }

  function settle(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      // The links are followed again before the file is read, so that later changes are seen where they lead now.
      places = placesOf(path)
      follow()
      changed()
    }, settleMs)
  }

  follow()
}

/** The names to watch, by their folders. */
function placesOf(path: string): Map<string, Set<string>> {
  const places = new Map<string, Set<string>>()
  let at = resolve(path)
  for (let links = 0; links < linksMax; links++) {
    const folder = realFolder(at)
    if (folder === undefined) break
    const names = places.get(folder) ?? new Set()
    places.set(folder, names.add(basename(at)))
    const link = linkOf(at)
    if (link === undefined) break
    // Clusters update mounted settings by replacing the link's first component.
    names.add(link.split('/')[0] ?? '')
    at = resolve(folder, link)
  }
  return places
}

/** Undefined while the folder does not exist. */
function realFolder(path: string): string | undefined {
  try {
    return realpathSync(dirname(path))
  } catch {
    return undefined
  }
}

function linkOf(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined
}
