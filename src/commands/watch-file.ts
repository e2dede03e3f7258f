import { lstatSync, readlinkSync, realpathSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'

const settleMs = 200
// As many as Linux follows; a file that could be read leads through fewer.
const linksMax = 40

type Watched = {
  readonly changed: () => void
  /** Changes in this folder are not seen. */
  readonly cannot: (folder: string, thrown: unknown) => void
}

/**
 * Editors write a file in several steps, and some replace it: its folder is watched, and the dust may settle. A file may be a
 * link, and changes with everything that it leads through.
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
      // Before the file is read: what changes from then on is seen where it leads to now.
      places = placesOf(path)
      follow()
      changed()
    }, settleMs)
  }

  follow()
}

/** The names that matter, by the folders in which they are. */
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
    // Clusters put another in the place of the first step of it.
    names.add(link.split('/')[0] ?? '')
    at = resolve(folder, link)
  }
  return places
}

/** Undefined while it is not there. */
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
