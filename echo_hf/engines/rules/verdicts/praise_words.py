"""What praise sounds like, beside the single words of `verdict_words`.

All of it is in plain words (see `lexicon`).
"""

from __future__ import annotations

from echo_hf.engines.rules import verdict_words
from echo_hf.engines.rules.verdicts.lexicon import phrases
from echo_hf.engines.rules.words import words

# As often said beside a complaint; some of them also name what a picture shows.
AMUSED = words(
    en="""lol lmao haha hahaha wow woah whoa omg wtf insane crazy wild unreal unbelievable
    bonkers holy funny hilarious fun magic magical sick fire sharp clean cool yay fast thanks
    thank thx ty""",
    es="jaja jajaja brutal gracias",
    fr="mdr ouf merci",
    de="irre krass danke",
    pt="kkk kkkk kkkkk rsrs demais obrigado obrigada",
    it="assurdo ahah grazie",
)
# Decide where no complaint stands beside them.
WEAK_PRAISE = phrases(
    en="""works, worked, working now, better, correct, correctly, super, down to, i seen, ever
    seen, i have seen, i have ever seen, holds up, held up, everything right, readable, legible,
    convincing, lifelike, well, finally, cleaned up, exactly, precisely, was right, is right,
    are right, were right, feel right, feels right, felt right, look right, looks right, looked
    right, it right, them right, text right, hands right, face right, came out right, spelled
    right, spelt right, fixed, fixes, solved, solves, improved, improvement, realistic, real,
    kept, preserved, preserves, retained, intact, faithful, faithfully, matches, matched,
    consistent, identical, unchanged, untouched, survived, stayed, first try, one try, one shot,
    first attempt, one go, first go, pretty, decent, is fine, looks fine, works fine,
    believable, looks natural, look natural, handled, happy, never seen, elegant, usable,
    printable, not yellow, not orange, not sepia""",
    es="""funciona, funcionó, bueno, buena, bien, mejor, exacto, exactamente, realista,
    conserva, conservó, mantuvo, mantiene, respeta, respetó, correcto, igual al, igual""",
    fr="""marche, fonctionne, mieux, exactement, réaliste, garde, gardé, conserve, conservé,
    respecte, respecté, du premier coup, identique""",
    de="""funktioniert, klappt, besser, gut, genau, realistisch, stimmt, passt, erhalten,
    beibehalten, beim ersten versuch, auf anhieb, identisch, gleich geblieben""",
    pt="""funcionou, bom, boa, bem, melhor, exatamente, manteve, mantém, respeitou, de primeira,
    igual ao, igual à, tal qual""",
    it="""funziona, bene, meglio, esattamente, realistico, mantenuto, rispetta, rispettato, al
    primo colpo""",
)
PRAISE = (verdict_words.PRAISE - WEAK_PRAISE - AMUSED) | phrases(
    en="""better than, way better, much better, looks better, works well, works great, work
    well, works perfectly, could never, blows away, blew me away, blown away, blows my mind,
    beats, outperforms, nails it, nailed it, spot on, on point, well done, as it should, as they
    should, good job, great job, great work, no notes, chef kiss, no words, cannot go wrong,
    five stars, solid result, solid work, solid job, made me laugh, made me smile, made me cry,
    made my day, worth the wait, would pay, d pay, never guess, never have guessed, almost
    smell, almost taste, almost feel, almost hear, where it should be, where they should be,
    where it belongs, where they belong, where i put, where i left, cannot believe, thrilled,
    grateful, relieved, chuffed, thought it was real, thought it was photo, thought it was
    photograph, thought this was real, thought this was photo, thought this was photograph,
    thought that was photo, thought that was real, thought that was photograph, mistook it for,
    never fails, never seen such, never looked better, could not be better, could not be
    happier, cannot stop looking, cannot tell difference, cannot tell it is ai, cannot tell,
    could not tell, nails _, close to perfect, not bad, not bad at all, did not expect it, did
    not expect this, uncanny resemblance, uncanny likeness, badass, insanely good, crazy good,
    stupid good, ridiculously good, scary good, creepy good, weirdly well, weirdly good, oddly
    satisfying, hate how good, hate how well, hate how much i love, hate that i love, hate how
    much i like, what i wanted, what i asked for, what i needed, game changer, would hire, would
    buy, would hang, would frame, would print, d hang, d frame, d buy, d hire, d print, take my
    money, i like, we like, i do like, like how, masterpiece, wonderfully, magnificent,
    exquisite, impeccable, remarkable, phenomenal, marvellous, marvelous, terrific, amazingly,
    incredibly, beyond words, indistinguishable, goosebumps, follows instructions, followed
    instructions, follows prompt, followed prompt, looks alive, looks real, look real, looks
    like a photo, real thing, fooled me, could have fooled, favourites, favorites, killed it,
    crushed it, crushes it, banger, top notch, worth it, impresses, satisfying, aced, happy
    with, pleased, proud, where you drew, where i drew, where you wanted, where i wanted, as
    asked, as requested, nothing to fix, to life, keeper, stunner, beauty, jaw dropping,
    seamless, seamlessly, effortless, effortlessly, there are none, found none, found nothing
    wrong""",
    es="""me gusta, me gustan, pensé que era, creí que era, igualito, igualita, tal cual,
    clavadito, idéntico, me encanta, me encantan, encantó, qué bonito, qué bien, qué pasada,
    buenísima, impresionante, increíblemente, maravilla, maravillosa, excelente, fantástico,
    fantástica, espectaculares, clavado, clavó, nada mal, no está mal, mejor que, vale la pena,
    joya, obra de arte, preciosos, preciosas, bonitos, bonitas, hermosas, brutales, alucino,
    mola, molan, guapísimo, chulísimo, lindísimo, perfectamente, perfectas, perfectos""",
    fr="""j aime, j adore, j ai cru que c était, plus vrai que nature, on dirait une photo, on
    dirait une vraie, adoré, trop beau, trop belle, trop bien, trop fort, pas mal, chapeau,
    mignon, mignonne, mieux que, superbement, splendide, parfaitement, merveilleux,
    merveilleuse, réussie, réussis, bluffante, impressionnant, impressionnante, beaux, belles,
    magnifiques, jolis, jolies, rien à redire, tuerie, incroyables, on s y croirait""",
    de="""gefällt mir, gefällt, wie ein foto, wie ein echtes, dachte das ist ein foto, dachte
    das wäre, gefallen mir, nicht schlecht, besser als, wunderbar, hervorragend, beeindruckend,
    beeindruckt, fantastisch, herrlich, süß, niedlich, spitze, gelungene, hübsch, schöne,
    schönes, schöner, schönen, tolle, tolles, toller, großartige, nichts auszusetzen, richtig
    gut, begeistert, perfekte, perfekter""",
    pt="""gostei, gosto, achei que era foto, parece foto, igualzinho, igualzinha, idêntico, amo,
    que lindo, que linda, fofo, fofa, melhor que, melhor do que, incríveis, lindos, lindas,
    maravilhosa, espetacular, arrasou, perfeitos, perfeitas, impressionante, caprichou, ficou
    bom, ficou boa, bom demais, boa demais, lindo demais, linda demais, bom trabalho""",
    it="""mi piace, mi piacciono, pensavo fosse, sembra una foto, sembra vero, sembra vera,
    identico, che bello, che bella, niente male, non male, meglio di, belli, perfetti, perfette,
    bravissimo, eccellente, fantastica, meraviglioso, meravigliosa, splendido, splendida,
    stupenda, spettacolare, ottima, troppo bello, troppo bella, adoro, carino, carina, geniale,
    meraviglia, figata, complimenti, capolavoro""",
)
