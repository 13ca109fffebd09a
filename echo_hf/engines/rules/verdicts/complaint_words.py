"""What complaints sound like, beside the single words of `verdict_words`.

All of it is in plain words (see `lexicon`). What names a failure stands in `failures`.
"""

from __future__ import annotations

from echo_hf.engines.rules import verdict_words
from echo_hf.engines.rules.verdicts.lexicon import phrases

# Words that say more often what became of something; they are read with what they speak of.
READ_APART = frozenset({"missing", "lost", "drift", "drifts", "meh", "falta"})
COMPLAINT = (verdict_words.COMPLAINT - READ_APART) | phrases(
    en="""not at all, yeah no, drawing board, crime scene, cannot say i, shame, pity, too bad,
    not even close, junk, mush, blob, blobs, lacking, sucks, suck, nope, useless, rubbish, poor,
    poorly, botched, butchered, disaster, nonsense, struggling, struggle, issue, issues,
    problem, problems, bug, buggy, bugs, annoying, annoyed, frustrating, frustrated, sadly,
    mistake, mistakes, error, errors, incorrect, incorrectly, unnatural, off model, looks off,
    look off, is off, are off, feels off, bit off, slightly off, way off, was off, yikes, oof,
    ugh, eww, ew, nah, regression, downgrade, nerfed, worthless, horrifying, nightmare fuel,
    waste of time, waste of money, not great, not good, no good, not impressed, not convinced,
    not quite right, not worth, never works, never gets it, cannot do, could not do, gave up,
    gives up, giving up, wasted, fell apart, falls apart, falling apart, nothing like, far from,
    nowhere near, no luck, crap, shit, shitty, pathetic, trash, cringe, off putting, dislike,
    disliked, hot mess, cannot tell what, cannot tell who, cannot tell which, screwed up, screws
    up, messes up, mess up, fucked, fucks up, worse than, prefer old, prefer the original,
    original was better, wrong again, unacceptable, insulting, let down, fail at, did not work,
    does not work, unfinished, terribly, badly, weirdly shaped, awkward, nightmare, sloppy,
    amateurish, disconnected, inferior, faulty, defect, defects, flaw, flaws, flawed, complaint,
    complaints, gripe, downside, drawback, drawbacks, limitation, limitations, weakness, fails
    to, failed to, looks awful, makes no sense, make no sense, no sense, got worse, incapable,
    unable, impossible to get, nothing for me""",
    es="""errores, problema, problemas, fatal, horribles, pésimo, pésima, raro, rara, raros,
    raras, está mal, están mal, sale mal, salió mal, quedó mal, se ve mal, mal hecho, lástima,
    qué pena, pena, decepción, deforme, deformes, malísimo, malísima, feos, feas, basura,
    desastre, fallos, fallan, incorrecto, incorrecta, equivocado, equivocada, no vale, no sirve,
    no hay manera, no hay forma, peores, ni parecido, nada que ver, chapuza, fracaso, no me
    gusta, no me convence, inútil""",
    fr="""erreur, erreurs, problème, problèmes, mal fait, mal rendu, mal dessiné, mal dessinée,
    c est mal, nul, nulle, nuls, bizarre, bizarres, étrange, étranges, dommage, hélas,
    malheureusement, affreuse, décevante, déçu, déçue, catastrophe, ratés, ratées, moches, bof,
    rien à voir, n importe quoi, impossible, n aime pas, pas terrible, pas top, pas convaincu,
    pas ouf, échec, pire que""",
    de="""fehler, probleme, komisch, komische, komischen, seltsam, seltsame, schade,
    schrecklich, furchtbar, grauenhaft, grausig, unheimlich, nutzlos, müll, mies, miese,
    schlechte, schlechter, hässliche, falsche, falscher, falsches, falschen, katastrophe,
    enttäuscht, reinfall, schlimmer, unbrauchbar, misslungene, nervt, gefällt mir nicht,
    merkwürdig, daneben, peinlich, unmöglich, geht nicht, klappt nicht""",
    pt="""erro, erros, péssimo, péssima, horrível, estranho, estranha, estranhos, que pena,
    infelizmente, feios, feias, lixo, falhas, errada, errados, erradas, piores, decepção, não
    gostei, nada a ver, fracasso, bugado, bugada, ficou mal, mal feito""",
    it="""errore, errori, problemi, pessimo, pessima, strano, strana, strani, strane, peccato,
    purtroppo, brutti, brutte, sbagliata, sbagliati, sbagliate, disastro, schifo, delusione,
    deluso, deludenti, fallimento, peggiore, inutile, non mi piace, non c entra, niente a che
    vedere, inguardabile""",
)
# Decide where no praise stands beside them.
WEAK_COMPLAINT = phrases(
    en="""hmm, hm, meh, why is, why are, why does, why did, why has, fix, what happened to, what
    is going on, what is up with, could be better, should be better, could have been better, was
    better, used to be better, expected better, expected more, nice try, good try, do better,
    not there yet, not yet, wish, if only, needs work, needs improvement, room for improvement,
    keeps changing, kept changing, keeps making, kept making, keeps turning, keeps giving, kept
    giving, keeps putting, keeps drawing, cursed, careful, strange, odd, oddly, instead of, more
    like, look closely, look closer, zoom in, overrated, overhyped, no longer, for some reason,
    prompt says, prompt said, prompt asked, requested, thousand times, hundred times, million
    times, i count, no matter what, no matter how, no matter which, times in a row, twice in a
    row, three times, should be, should have been, supposed to be, supposed to, opposite, now
    there are, now there is, there are now, out of four, out of five, out of ten, giving me,
    questionable, concerning, limited, whatever i""",
    es="""por qué, ojalá, veces seguidas, da miedo, debería ser, da un poco de miedo, en vez de,
    en lugar de, ni de lejos, podría ser mejor, podría mejorar, no del todo, más bien, da igual
    lo que, por más que""",
    fr="""pourquoi, fois sur, d affilée, devrait être, au lieu de, à la place de, peut mieux
    faire, pas tout à fait, peu importe""",
    de="""warum, wieso, sollte, mal hintereinander, weshalb, statt, anstatt, stattdessen, könnte
    besser sein, eher wie, egal was, egal wie""",
    pt="""por que, vezes seguidas, deveria ser, ao invés de, em vez de, no lugar de, quem dera,
    poderia ser melhor""",
    it="perché, di fila, dovrebbe essere, invece di, al posto di, magari, potrebbe essere meglio",
)
# How often something happens: it is worth saying of what should not.
REPEATED = phrases(
    en="""every time, every single time, each time, always, still, keeps, kept getting,
    everytime, again""",
    es="siempre, cada vez, sigue, otra vez, de nuevo",
    fr="toujours, à chaque fois, chaque fois, de nouveau",
    de="immer, jedes mal, jedesmal, ständig, wieder, schon wieder",
    pt="sempre, toda vez, todas as vezes, continua, de novo, outra vez",
    it="ogni volta, tutte le volte, di nuovo",
)
# Beside praise they make it half of one; alone they complain.
HEDGES = phrases(
    en="bit, slightly, tad, little bit, somewhat, a little too",
    es="poco, algo raro, algo rara, ligeramente",
    fr="peu, légèrement",
    de="etwas, bisschen, leicht",
    pt="um pouco, meio, levemente",
    it="po, leggermente",
)
# Beside praise they make it half of one; beside a complaint they say nothing.
SOFTENING = phrases(
    en="""almost, nearly, close, not perfect, half right, partly, partially, sometimes, good
    enough, good start, promising, mixed""",
    es="casi, más o menos",
    fr="presque, parfois, à moitié, moyen",
    de="fast perfekt, fast richtig, fast gut, beinahe, manchmal, halbwegs, teilweise",
    pt="quase, às vezes, mais ou menos",
    it="quasi, così così",
)
# What they speak of is all that failed.
TEMPERING = phrases(
    en="""mixed bag, mixed results, apart from, other than, aside from, besides that, only
    issue, only problem, only thing, only complaint, only gripe, only nitpick, only downside,
    nitpick, minus, would be _ if, would have been, d be _ if, if you ignore, if i had to
    nitpick""",
    es="único problema, único fallo, única pega, única cosa, quitando",
    fr="à part, seul bémol, seul hic, bémol, seul problème",
    de="bis auf, einziges problem, einzige problem, abgesehen von",
    pt="tirando, única coisa, só que",
    it="unico problema, unica cosa, unico difetto",
)
UNEVEN = phrases(
    en="hit and miss, hit or miss, mixed bag, mixed results",
    fr="inégal",
    de="durchwachsen",
)
NEEDED = "took|took me|took it|needed|takes|needs|after|after about|took about|took me about"
TRIES = "tries|attempts|goes|shots|rounds|generations|rerolls|retries|regenerations"
SEVERAL_TRIES = frozenset(
    f"{needed} _ {tries}" for needed in NEEDED.split("|") for tries in TRIES.split("|")
) | phrases(
    en="""took few tries, took few attempts, took several tries, took while, took me while, took
    _ times, couple of tries, bunch of tries, lots of tries, few tries, several tries, many
    tries, several attempts, many attempts, few attempts, second try, second attempt, third try,
    third attempt, fourth try, fourth attempt, fifth try, fifth attempt, sixth try, 2nd try, 3rd
    try, 4th try, 5th try, second time, third time, fourth time, fifth time, one in five, one in
    three, one in four, had to retry, had to regenerate, kept retrying, rerolled, rerolling,
    rerolls""",
    es="""tras _ intentos, después de _ intentos, al segundo intento, al tercer intento, varios
    intentos, muchos intentos""",
    fr="""après _ essais, plusieurs essais, plusieurs tentatives, deuxième essai, troisième
    essai, au bout de _ essais, deuxième coup""",
    de="""nach _ versuchen, mehrere versuche, mehreren versuchen, zweiten versuch, dritten
    versuch, beim zweiten, beim dritten, viele versuche, brauchte _ versuche""",
    pt="""depois de _ tentativas, várias tentativas, segunda tentativa, terceira tentativa,
    muitas tentativas, após _ tentativas""",
    it="""dopo _ tentativi, vari tentativi, diversi tentativi, secondo tentativo, terzo
    tentativo, molti tentativi, al secondo colpo""",
)
