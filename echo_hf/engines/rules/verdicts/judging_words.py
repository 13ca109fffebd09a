"""The words by which praise and complaint are read rightly: denials, changes, what was wanted.

All of it is in plain words (see `lexicon`).
"""

from __future__ import annotations

from echo_hf.engines.rules.verdicts.lexicon import phrases
from echo_hf.engines.rules.words import words

NEGATORS = words(
    en="""not no never without cannot neither nor zero none nothing nobody less fewer avoids
    avoided hardly barely""",
    es="nunca jamás sin tampoco ni ningún ninguna nada menos",
    fr="pas jamais sans aucun aucune rien ne n moins",
    de="nicht kein keine keinen keinem keiner nie niemals ohne nichts weniger",
    pt="não nao sem nem nenhum nenhuma",
    it="non senza mai nessun nessuna né",
)
# They may follow what they deny.
TRAILING_NEGATORS = words(
    fr="pas plus jamais rien",
    de="nicht kein keine nie",
)
SPEAKERS = words(
    en="i you we they people im u",
    es="yo tú nosotros",
    fr="je j tu vous nous",
    de="ich du wir man",
    pt="eu você nós",
    it="io tu noi",
)
# Said of a result only when denied: "did not keep", "won't follow".
WANTED = phrases(
    en="""keep, preserve, match, same, let, allow, able, capture, captures, draw, draws, handle,
    manage, render, renders, spell, spells, fit, show, include, included, help, look like, looks
    like, looking like, resemble, resembles, similar, enough, there, count, produce, output,
    shows, do, does, asked for, say, says, stay, stays, apply, applied, add, added, fill,
    create, creates, accept, maintain, retain, copy, make sense, remove, removed, change the
    background, support, care, convey, come out, make, see""",
    es="""hace, sale, salen, salió, deja, dejó, entiende, entendió, siguió, puede, sabe, logra,
    logré, parece, parecen, pone, puso, escribe, dibuja, se parece, igual, lo que pedí,
    respetar, genera, generó, quiere, mantener, hizo, cambia el fondo, cambió el fondo,
    coincide, lee""",
    fr="""ressemble, ressemblent, suit, suivi, comprend, compris, sait, arrivé, réussit, veut,
    peut, écrit, même, correspond, fait, dessine, lit""",
    de="""aussieht, sieht aus, ähnlich, hält, hält sich, befolgt, versteht, verstanden, kann,
    schafft, geschafft, macht, gemacht, will, lässt, lesbar, wie gewünscht, bekommt, hin,
    erkennt, gleich, gleiche, derselbe, dieselbe, dasselbe, schreibt, zeichnet, zeigt""",
    pt="""faz, fez, segue, seguiu, entende, entendeu, consegue, conseguiu, deixa, deixou,
    parecem, escreve, gera, gerou, quer, saiu, respeita, desenha, lê""",
    it="""fa, seguito, capisce, capito, riesce, sa, lascia, sembra, somiglia, assomiglia,
    scrive, uguale, stesso, stessa, generato, vuole, può, disegna, leggibile, legge""",
)
# As those; who does not do them ignores what was asked.
OBEYED = phrases(
    en="""follow, follows, followed, following, listen, listens, understand, understands,
    understood, obey, obeys, respect, respects, stick to""",
)
# As those, and also when the writer is the one who could not.
WANTED_BY_ANYONE = phrases(
    en="""get, gets, got, getting, generate, make it, read, recognise, recognize, recognisable,
    recognizable, reproduce, replicate, edit, trust, want, wanted, ask, asked, use, convinced,
    fan""",
    es="consigo, logro, pude, puedo, pedí, consigue",
    fr="arrive, demandé",
    de="bekomme, kriege, schaffe, hinbekommen, wollte",
    pt="consegui, pedi",
    it="riesco, chiesto, riuscito",
)
# Neither good nor bad before it is known of what: "the face changed", "the colours are different".
CHANGED = phrases(
    en="""melt, melts, melted, melting, fused, merged, jumped, twisted, bent, bends, swapped,
    moved, moves, moving, changed, changes, change, changing, different, differently, drift,
    drifts, drifted, drifting, another, else, anymore, any more, altered, alters, alter, swaps,
    morphed, morphs, morphing, younger, older, fatter, thinner, shifted, shifts, shift,
    replaced, replaces, rewritten, rewrites, rewrote, rewrite, invented, invents, invent,
    warped, warps, smaller, bigger, rounder, wider, narrower, taller, shorter, became, becomes,
    turned into, turns into, bleeds, faded, fades, randomised, randomized, modified, modifies""",
    es="""cambia, cambió, cambian, cambiaron, cambiado, cambiada, cambiando, distinto, distinta,
    distintos, distintas, diferente, diferentes, otro, otra, otros, otras, inventó, alteró""",
    fr="""changé, changée, changés, changées, changent, différent, différente, différents,
    autre, autres, dérive, invente, inventé, modifié, modifiée""",
    de="""verändert, veränderte, veränderten, ändert, geändert, anders, andere, anderes,
    anderer, anderen, fremd, abweicht, erfindet, verschiebt""",
    pt="""mudou, muda, mudaram, mudando, mudado, mudada, outro, outra, outros, outras, alterou,
    inventou""",
    it="""cambiato, cambiata, cambiati, cambiate, cambiano, diverso, diversa, diversi, diverse,
    altro, altra, alterato, inventato""",
)
# Bad, unless it was asked for.
GONE = phrases(
    en="""no _ anywhere, no _ in sight, no sign of, gone, missing, lost, loses, losing, lose,
    vanished, vanishes, vanish, disappeared, disappears, disappear, disappearing, dropped,
    drops, forgot, forgets, forgotten, left out, leaves out, omitted, omits, removed my,
    deleted, deletes, erased, erases, skipped, skips, swallowed, where did my, where did it, not
    there""",
    es="""falta, faltan, faltaba, faltó, desaparece, desapareció, desaparecieron, desaparecido,
    perdió, perdido, olvidó, olvida, quitó, borró, se comió, se come, comió""",
    fr="""manque, manquent, manquait, disparaît, disparait, disparu, disparue, disparus,
    disparaissent, perdu, perdue, oublié, oublie, effacé, supprimé""",
    de="""fehlt, fehlen, fehlte, fehlten, verschwunden, verschwindet, verschwinden, verloren,
    vergessen, vergisst, weggelassen, gelöscht""",
    pt="""faltam, faltou, faltando, sumiu, sumiram, desapareceu, desapareceram, perdeu,
    esqueceu, apagou, removeu""",
    it="""manca, mancano, mancava, sparito, sparita, spariti, sparisce, scomparso, scomparsa,
    perso, persa, dimenticato, cancellato, tolto""",
)
REMOVAL = words(
    en="remove removed removing erase delete clean without rid clear declutter cut",
    es="quita quitar elimina eliminar borra borrar sin",
    fr="enlève enlever supprime supprimer efface effacer retire sans",
    de="entferne entfernen lösche löschen weg ohne",
    pt="remova remover apague apagar tire tirar sem",
    it="rimuovi rimuovere elimina eliminare cancella togli senza",
)
EXCESS = words(
    en="too overly",
    es="demasiado demasiada demasiados demasiadas",
    fr="trop",
    de="zu",
    it="troppo troppa troppi troppe",
)
EXCESS_OF_SOME = frozenset({"too", "overly", "zu"})
# What a picture may be too much of; most other words after "too" are praise, or not of pictures.
EXCESSIVE = words(
    en="""dark bright smooth yellow orange red green blue saturated warm cold clean perfect
    glossy shiny generic big small large long short thin thick high low wide narrow young old
    busy cluttered simple plain soft blurry plastic dense many much few far close similar
    different slow literal cartoonish cartoony symmetrical polished sharp pale light contrasty
    noisy crowded flat artificial fake little muscular skinny fat realistic""",
    de="""dunkel hell gelb glatt groß klein viel viele wenig wenige stark jung alt bunt grell
    warm kalt rot grün blau perfekt weich künstlich brav dick dünn lang kurz langsam""",
)
# Phrases whose words mean something else alone.
NEUTRAL = phrases(
    en="""would love, d love, love to see, love to try, love to know, would be great, would be
    nice, would be cool, would be fun, would be amazing, would be awesome, would be better, d be
    great, d be nice, d be cool, would like, d like, good morning, good night, good luck, good
    evening, good question, good point, good day, best regards, at best, best results, best
    result, best way, best prompt, great prompt, nice prompt, cool prompt, good prompt, awesome
    prompt, love this prompt, love prompt, favourite prompt, favorite prompt, great idea, cool
    idea, fun idea, love idea, love this idea, great thread, thanks for sharing, thank you for
    sharing, thx for sharing, great share, clever prompt, clever idea, brilliant idea, not me
    trying, not me crying, not me spending, not me making, not me using, try your best, nice to
    see you, nice to meet, close up, close ups, at least, as well, as good as, no idea, no
    doubt, no way, no joke, no cap, no problem, no worries, not only, not to mention, why not,
    not gonna lie, not going to lie, not sure how, not sure if, cannot wait, could not resist,
    could not agree, did not know, do not know, do not think, do not need, do not worry, do not
    sleep on, does not matter, does not hurt, never mind, never thought, nothing but, lost my
    mind, lost for words, at a loss, right hand side, right side, right corner, left hand side,
    how good is, how well does, how well do, want to, wanted to, cannot stop, do not stop, make
    sure, anyone else, anything else, something else, nothing else, everything else, everyone
    else, what else, or else, for best, change my mind, error free, problem solved, not a
    problem, pet peeve, same here, same prompt, same way, same thing here, wrong thread, not a
    photo, not photoshop, not photoshopped, not real photo, not a real, artificial intelligence,
    did you, try again, trying again, tried again, do it again, again later, use again, back
    again, here again, again soon, once again, hope, hopefully, turned out, turns out, right
    away, right here, right there, right now, real quick, real people, for real, real life, look
    at, free, bad boy, do not let, if not, or not, not sponsored, why would you, did not have
    to, not need to, do not have to, cannot believe it, better prompt, better prompts, better
    result if, better results if, better results with, was hoping, work in progress, my work,
    your work, at work, to work with, for work, hand drawn, hand painted, hand made, handmade,
    by hand, on the other hand, looking for mistakes, look for mistakes""",
    es="""me encantaría, estaría bien, sería genial, buenos días, buenas noches, no solo, no sé,
    por lo menos, ni idea, sin duda, no importa, no hace falta, sin problema, sin problemas,
    buena suerte, buena idea, mejor prompt, nada menos, no es una foto, mismo prompt""",
    fr="""j aimerais, ce serait bien, ce serait top, bonne journée, bonne idée, bonne chance,
    pas seulement, pas de souci, pas de problème, sans doute, je ne sais pas, au moins, pas
    grave, pas besoin, n importe quel, n importe quelle, même consigne, même prompt, quand même,
    moi même, à main""",
    de="""wäre schön, wäre toll, wäre super, wäre gut, guten morgen, gute nacht, gute idee,
    nicht nur, keine ahnung, kein problem, weiß nicht, ohne zweifel, macht nichts, würde gerne,
    gleiche prompt, gleicher prompt, gleichen prompt, auch nicht, von hand""",
    pt="""adoraria, seria bom, seria legal, seria ótimo, bom dia, boa noite, boa tarde, boa
    ideia, boa sorte, não só, não sei, sem dúvida, sem problema, pelo menos, não importa, tudo
    bem, mesmo prompt, à mão""",
    it="""mi piacerebbe, sarebbe bello, buon giorno, buona idea, buona fortuna, non solo, senza
    dubbio, nessun problema, almeno, non importa, stesso prompt, a mano libera, stampato a mano""",
)
